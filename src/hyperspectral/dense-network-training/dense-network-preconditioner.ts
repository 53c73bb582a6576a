/** Preconditioner for the weights of the first layer of a network, from the covariance of its inputs. */
import { choleskyFactor, inverseOfLower } from '../numeric/index.js';
import { layerViews, type Sizes } from '../pixel-methods/index.js';

/**
 * Returns a multiplication by an approximate inverse Hessian. The Hessian of a softmax layer is at most half the covariance of its inputs
 * for each class (Böhning 1992), about a quarter for uncertain pixels, plus the penalty. Hidden values and biases vary by about 1 and need
 * no scaling. `covariance`: of the standardised inputs, bands x bands. `penalty`: above 0, a factor of half the squared weights.
 */
export function preconditioner(
  covariance: Float64Array,
  sizes: Sizes,
  penalty: number,
): (gradient: Float64Array) => Float64Array {
  const bands = sizes[0];
  const curvature = covariance.map((value, at) => value + (at % (bands + 1) === 0 ? 4 * penalty : 0));
  const lower = choleskyFactor(curvature, bands);
  // Damaged pixels can have such large values that the penalty is lost in rounding. Without preconditioning, the search is only slower.
  if (!lower) return (gradient) => gradient.slice();
  const inverse = inverseOfLower(lower, bands);
  return (gradient) => {
    const result = gradient.slice();
    const { weights } = layerViews(result, sizes)[0];
    for (let from = 0; from < weights.length; from += bands)
      multiplyTwice(inverse, weights.subarray(from, from + bands));
    return result;
  };
}

/** Replaces v by L' L v, where L is a lower triangular matrix, row by row. */
function multiplyTwice(lower: Float64Array, values: Float64Array): void {
  const { length } = values;
  const product = new Float64Array(length);
  for (let row = 0; row < length; row++)
    for (let at = 0; at <= row; at++) product[row] += lower[row * length + at] * values[at];
  values.fill(0);
  for (let row = 0; row < length; row++)
    for (let at = 0; at <= row; at++) values[at] += lower[row * length + at] * product[row];
}
