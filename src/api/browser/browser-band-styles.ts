/** Map styles that the bands of a collection allow. */
import type { Item } from './browser-requests.js';

export interface Band {
  /** Name in expressions: the group and the band number from 1. */
  expression: string;
  label: string;
  commonName: string | undefined;
}

export interface MapStyle {
  label: string;
  /** Render options of the map. */
  params: Record<string, string>;
  /** Expression of the time series, and its label. */
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

/** The indices that the server knows, by name: their bands by common names, and the range of their colours. */
export type Indices = Record<string, { bands: string[]; range: [low: number, high: number] }>;

/** Near infrared has two common names. In expressions, each also stands for a band with the other name. */
const NEAR_INFRARED = ['nir', 'nir08'];

/** The styles of several bands. The page adds a style for any single band. */
export function mapStyles(bands: Band[], indices: Indices): MapStyle[] {
  const has = (name: string) => {
    const names = NEAR_INFRARED.includes(name) ? NEAR_INFRARED : [name];
    return bands.some(({ commonName }) => names.includes(commonName ?? ''));
  };
  const styles = Object.entries(indices)
    .filter(([, index]) => index.bands.every(has))
    .map(([expression, { range }]): MapStyle => {
      const label = expression.toUpperCase();
      const params = { expression, rescale: range.join(), colormap_name: 'rdylgn' };
      return { label, params, expression, values: label };
    });
  if (has('red') && has('green') && has('blue'))
    styles.unshift({
      label: 'True colour',
      params: {},
      expression: styles[0]?.expression ?? 'red',
      values: styles[0]?.values ?? 'red',
    });
  return styles;
}
