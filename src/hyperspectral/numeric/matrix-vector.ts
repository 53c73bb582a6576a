/** The product of a matrix, row by row, with a spectrum that has one value per column. */
export function multiplyVector(weights: Float64Array, spectrum: ArrayLike<number>): Float64Array {
  const columns = spectrum.length;
  return Float64Array.from({ length: weights.length / columns }, (_, row) => {
    let sum = 0;
    for (let k = 0; k < columns; k++) sum += weights[row * columns + k] * spectrum[k];
    return sum;
  });
}
