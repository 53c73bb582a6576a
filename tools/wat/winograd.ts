/**
 * Matrices of Winograd's convolution (Lavin and Gray 2016, "Fast algorithms for convolutional neural networks"): F(n, r) computes n
 * outputs of r taps from n + r - 1 inputs as outputs(n) [(filters(r) taps) * (inputs x)], with one multiplication for each input. In two
 * dimensions each matrix is applied to the columns and then to the rows. The interpolation points are small integers and infinity.
 */

export type Matrix = readonly (readonly number[])[];

/** Matrices of tiles with `side` multiplications in one dimension. */
export interface Winograd {
  side: number;
  inputs: Matrix;
  /** Evaluates a polynomial of `taps` coefficients at the points; at infinity the value is its last coefficient. */
  filters: (taps: number) => Matrix;
  /** The transpose of such an evaluation, without scales. */
  outputs: (count: number) => Matrix;
}

function winograd(points: readonly number[], inputs: Matrix): Winograd {
  /** 1 / the product of the distances between a point and the others. */
  const scaleOf = (point: number) =>
    points.reduce((scale, other) => (other === point ? scale : scale / (point - other)), 1);
  return {
    side: points.length + 1,
    inputs,
    filters: (taps) => [
      ...points.map((point) => Array.from({ length: taps }, (_, power) => scaleOf(point) * point ** power)),
      Array.from({ length: taps }, (_, power) => Number(power === taps - 1)),
    ],
    outputs: (count) =>
      Array.from({ length: count }, (_, power) => [
        ...points.map((point) => point ** power),
        Number(power === count - 1),
      ]),
  };
}

export const OF_SIX: Winograd = winograd(
  [0, 1, -1, 2, -2],
  [
    [4, 0, -5, 0, 1, 0],
    [0, -4, -4, 1, 1, 0],
    [0, 4, -4, -1, 1, 0],
    [0, -2, -1, 2, 1, 0],
    [0, 2, -1, -2, 1, 0],
    [0, 4, 0, -5, 0, 1],
  ],
);

export const OF_FOUR: Winograd = winograd(
  [0, 1, -1],
  [
    [-1, 0, 1, 0],
    [0, 1, 1, 0],
    [0, -1, 1, 0],
    [0, -1, 0, 1],
  ],
);
