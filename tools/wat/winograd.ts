/**
 * The matrices of Winograd's convolution (Lavin and Gray 2016, "Fast algorithms for convolutional neural networks"): F(n, r) computes n outputs
 * of r taps from n + r - 1 inputs as outputs(n) [(filters(r) taps) * (INPUTS inputs)], with a multiplication for each input. In two dimensions
 * each matrix is applied to the columns and then to the rows. The points of interpolation are 0, 1, -1, 2, -2 and infinity.
 */

export type Matrix = readonly (readonly number[])[];

const POINTS = [0, 1, -1, 2, -2];
/** For each point, 1 / the product of its distances from the others. */
const SCALES = POINTS.map((point) =>
  POINTS.reduce((scale, other) => (other === point ? scale : scale / (point - other)), 1),
);

/** Inputs, and multiplications, of a tile. */
export const SIDE = POINTS.length + 1;

export const INPUTS: Matrix = [
  [4, 0, -5, 0, 1, 0],
  [0, -4, -4, 1, 1, 0],
  [0, 4, -4, -1, 1, 0],
  [0, -2, -1, 2, 1, 0],
  [0, 2, -1, -2, 1, 0],
  [0, 4, 0, -5, 0, 1],
];

/** Evaluates a polynomial of `taps` coefficients at the points; at infinity that is its last coefficient. */
export const filters = (taps: number): Matrix => [
  ...POINTS.map((point, i) => Array.from({ length: taps }, (_, power) => SCALES[i] * point ** power)),
  Array.from({ length: taps }, (_, power) => Number(power === taps - 1)),
];

/** The transpose of such an evaluation, without scales. */
export const outputs = (count: number): Matrix =>
  Array.from({ length: count }, (_, power) => [
    ...POINTS.map((point) => point ** power),
    Number(power === count - 1),
  ]);
