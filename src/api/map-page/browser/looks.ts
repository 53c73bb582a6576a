/** How a collection can be looked at: what its bands allow. */
import type { Item } from './api.js';

export interface Band {
  /** As expressions name it: the group and the number from 1. */
  expression: string;
  label: string;
  commonName: string | undefined;
}

export interface Look {
  label: string;
  /** Parameters of the map. */
  params: Record<string, string>;
  /** What a series of a place is made of, and how that is called. */
  expression: string;
  values: string;
}

export function bandsOf({ assets }: Item): Band[] {
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

/** Beside these, any band can be looked at alone. */
export function looksOf(bands: Band[]): Look[] {
  const has = (...names: string[]) => bands.some(({ commonName }) => names.includes(commonName ?? ''));
  const index = (expression: string, rescale: string): Look => ({
    label: expression.toUpperCase(),
    params: { expression, rescale, colormap_name: 'rdylgn' },
    expression,
    values: expression.toUpperCase(),
  });
  const looks: Look[] = [];
  if (has('red') && has('nir', 'nir08')) looks.push(index('ndvi', '0,1'));
  if (has('nir', 'nir08') && has('swir16')) looks.push(index('ndmi', '-0.5,0.5'));
  if (has('red') && has('green') && has('blue'))
    looks.unshift({
      label: 'True colour',
      params: {},
      expression: looks[0]?.expression ?? 'red',
      values: looks[0]?.values ?? 'red',
    });
  return looks;
}
