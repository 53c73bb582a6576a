/** Results of titiler, rio-tiler and color-operations, made by test/fixtures/imagery/reference_titiler.py. */
import { readFileSync } from 'node:fs';

type Plane = (number | null)[];

export interface Reference {
  pixels: Plane[];
  formulas: { formula: string; planes: Plane[] }[];
  width: number;
  height: number;
  dem: Plane;
  bands: Plane[];
  bytes: Plane[];
  ceil: Plane[];
  algorithms: {
    name: string;
    params: Record<string, number>;
    bands: number;
    shape: [height: number, width: number];
    planes: Plane[];
  }[];
  colormaps: { colormap: object; values: number[]; colours: number[][] }[];
  /** First ten digits of the SHA-1 of 256 colours of 4 bytes. */
  named: Record<string, string>;
  /** Every 15th colour. */
  jet_r: number[][];
}

export const reference = JSON.parse(
  readFileSync(new URL('../../../test/fixtures/imagery/titiler.json', import.meta.url), 'utf8'),
) as Reference;

export const planeOf = (values: Plane): Float64Array => Float64Array.from(values, (value) => value ?? NaN);
