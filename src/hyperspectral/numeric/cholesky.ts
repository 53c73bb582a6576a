/** Traces and triangular factors of covariances, in f64. Matrices are square, row by row. */

/** The sum of the diagonal. */
export function trace(matrix: Float64Array, size: number): number {
  let sum = 0;
  for (let i = 0; i < size; i++) sum += matrix[i * size + i];
  return sum;
}

/**
 * Returns L, where the matrix is L L'; undefined if the remainder of a diagonal element is at most the share `least` of the element. Reads
 * the lower part of the matrix and writes that of `lower`.
 */
export function choleskyFactor(
  matrix: Float64Array,
  size: number,
  { least = DIAGONAL_EPSILON, lower = new Float64Array(size * size) } = {},
): Float64Array | undefined {
  for (let i = 0; i < size; i++)
    for (let j = 0; j <= i; j++) {
      let sum = matrix[i * size + j];
      for (let k = 0; k < j; k++) sum -= lower[i * size + k] * lower[j * size + k];
      if (i !== j) lower[i * size + j] = sum / lower[j * size + j];
      else if (sum > least * matrix[i * size + i]) lower[i * size + i] = Math.sqrt(sum);
      else return undefined;
    }
  return lower;
}

/** Smaller remainders of a diagonal element are rounding errors of some hundred rows. */
const DIAGONAL_EPSILON = 1e-13;

/** The inverse of a lower triangular matrix. */
export function inverseOfLower(lower: Float64Array, size: number): Float64Array {
  const inverse = new Float64Array(size * size);
  for (let column = 0; column < size; column++)
    for (let row = column; row < size; row++) {
      let sum = row === column ? 1 : 0;
      for (let k = column; k < row; k++) sum -= lower[row * size + k] * inverse[k * size + column];
      inverse[row * size + column] = sum / lower[row * size + row];
    }
  return inverse;
}
