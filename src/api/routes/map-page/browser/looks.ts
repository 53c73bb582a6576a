/** How a collection can be looked at: what its bands allow. */
import type { Item } from './api.js';

export interface Band {
  /** As expressions name it: the group and the number from 1. */
  expression: string;
  label: string;
  commonName: string | undefined;
}

export interface MapStyle {
  label: string;
  /** Parameters of the map. */
  params: Record<string, string>;
  /** What a series of a place is made of, and how that is called. */
  expression: string;
  values: string;
}

export function listItemBands({ assets }: Item): Band[] {
  return Object.entries(assets).flatMap(([group, { roles, 'eo:bands': bands = [] }]) =>
    roles.includes('mask')
      ? []
      : bands.map(({ name, common_name: commonName }, i) => ({
          expression: `${group.replace(/\W/g, '_')}_b${i + 1}`,
          label: commonName && commonName !== name ? `${name} (${commonName})` : name,
          commonName,
        })),
  );
}

/** The indices that the server knows, by their names: their bands by common names, and the range of their colours. */
export type Indices = Record<string, { bands: string[]; range: [low: number, high: number] }>;

/** Near infrared has two common names. Expressions accept either of them for a band that has the other. */
const NEAR_INFRARED = ['nir', 'nir08'];

/** Beside these, any band can be looked at alone. */
export function mapStyles(bands: Band[], indices: Indices): MapStyle[] {
  const has = (name: string) => {
    const names = NEAR_INFRARED.includes(name) ? NEAR_INFRARED : [name];
    return bands.some(({ commonName }) => names.includes(commonName ?? ''));
  };
  const looks = Object.entries(indices)
    .filter(([, index]) => index.bands.every(has))
    .map(([expression, { range }]): MapStyle => {
      const label = expression.toUpperCase();
      const params = { expression, rescale: range.join(), colormap_name: 'rdylgn' };
      return { label, params, expression, values: label };
    });
  if (has('red') && has('green') && has('blue'))
    looks.unshift({
      label: 'True colour',
      params: {},
      expression: looks[0]?.expression ?? 'red',
      values: looks[0]?.values ?? 'red',
    });
  return looks;
}
