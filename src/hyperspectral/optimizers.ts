/** Optimizers of the weights of networks: L-BFGS with a preconditioner for dense networks, and Adam for convolutional ones. */
import { choleskyFactor, inverseOfLower } from './linear-algebra.js';
import { layerViews, type Sizes } from './methods/dense-network.js';

export interface Evaluation {
  value: number;
  gradient: Float64Array;
}

/** Pairs of steps and gradient changes that approximate the curvature. */
const HISTORY_LENGTH = 10;
/** Smallest accepted share of the decrease that the slope predicts (Armijo condition). */
const ARMIJO_DECREASE = 1e-4;
const MAX_HALVINGS = 20;
/** The search ends when an iteration gains less than this share of the value. */
const MIN_RELATIVE_GAIN = 1e-7;

interface MinimiseOptions {
  iterations: number;
  /**
   * Multiplies a gradient by a symmetric positive definite approximation of the inverse Hessian, up to a factor. It replaces the identity
   * as initial approximation and saves most iterations if inputs are correlated, as neighbouring bands are.
   */
  precondition?: ((gradient: Float64Array) => Float64Array) | undefined;
  onIteration?: (iteration: number, value: number) => void;
}

/**
 * Minimises a smooth function by L-BFGS (Nocedal and Wright 2006, algorithms 7.4 and 7.5) with a backtracking line search. Returns the
 * point with the smallest value that was found. All arithmetic is f64 in a fixed order.
 */
export async function minimiseLbfgs(
  start: Float64Array,
  evaluate: (point: Float64Array) => Promise<Evaluation>,
  { iterations, precondition = (gradient) => gradient.slice(), onIteration }: MinimiseOptions,
): Promise<Float64Array> {
  let point = start;
  let now = await evaluate(point);
  const pairs: Pair[] = [];
  for (let iteration = 1; iteration <= iterations; iteration++) {
    let direction = searchDirection(now.gradient, pairs, precondition);
    let slope = dot(direction, now.gradient);
    if (slope >= 0) {
      pairs.length = 0;
      direction = searchDirection(now.gradient, pairs, precondition);
      slope = dot(direction, now.gradient);
    }
    if (slope === 0) break;
    const from = { point, now };
    let step = pairs.length === 0 ? Math.min(1, 1 / Math.sqrt(-slope)) : 1;
    let next: Evaluation | undefined;
    for (let halving = 0; halving < MAX_HALVINGS; halving++, step /= 2) {
      point = from.point.map((value, i) => value + step * direction[i]);
      const candidate = await evaluate(point);
      if (candidate.value <= now.value + ARMIJO_DECREASE * step * slope) {
        next = candidate;
        break;
      }
    }
    if (!next) return from.point;
    const pair = pairOf(from, { point, now: next });
    if (pair) pairs.push(pair);
    if (pairs.length > HISTORY_LENGTH) pairs.shift();
    now = next;
    onIteration?.(iteration, now.value);
    if (from.now.value - now.value < MIN_RELATIVE_GAIN * Math.abs(from.now.value)) break;
  }
  return point;
}

interface Pair {
  step: Float64Array;
  change: Float64Array;
  product: number;
}

interface SearchPoint {
  point: Float64Array;
  now: Evaluation;
}

/** Returns undefined if the curvature along the step is not positive, because the pair would spoil the approximation. */
function pairOf(from: SearchPoint, to: SearchPoint): Pair | undefined {
  const step = to.point.map((value, i) => value - from.point[i]);
  const change = to.now.gradient.map((value, i) => value - from.now.gradient[i]);
  const product = dot(step, change);
  return product > 1e-10 * dot(change, change) ? { step, change, product } : undefined;
}

/** Minus the approximate inverse Hessian times the gradient (algorithm 7.4). */
function searchDirection(
  gradient: Float64Array,
  pairs: readonly Pair[],
  precondition: (gradient: Float64Array) => Float64Array,
): Float64Array {
  const rest = gradient.map((value) => -value);
  const shares = new Array<number>(pairs.length);
  for (let i = pairs.length - 1; i >= 0; i--) {
    const { step, change, product } = pairs[i];
    shares[i] = dot(step, rest) / product;
    add(rest, change, -shares[i]);
  }
  const direction = precondition(rest);
  const last = pairs.at(-1);
  if (last) {
    const scale = last.product / dot(last.change, precondition(last.change));
    for (let i = 0; i < direction.length; i++) direction[i] *= scale;
  }
  for (const [i, { step, change, product }] of pairs.entries())
    add(direction, step, shares[i] - dot(change, direction) / product);
  return direction;
}

function add(to: Float64Array, values: Float64Array, factor: number): void {
  for (let i = 0; i < to.length; i++) to[i] += factor * values[i];
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

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

const ADAM_BETA_1 = 0.9;
const ADAM_BETA_2 = 0.999;
const ADAM_EPSILON = 1e-8;

/**
 * Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019), in float64 over float32 weights. Invariant: `first`
 * and `second` are the decaying sums of all gradients so far and of their squares; `powers` are the powers of the betas.
 */
export class AdamW {
  private readonly first: Float64Array;
  private readonly second: Float64Array;
  private readonly powers = [1, 1];

  constructor(
    readonly weights: Float32Array,
    private readonly decay: number,
  ) {
    this.first = new Float64Array(weights.length);
    this.second = new Float64Array(weights.length);
  }

  step(gradient: Float64Array, rate: number): void {
    const { weights } = this;
    const first = this.first;
    const second = this.second;
    const powers = this.powers;
    powers[0] *= ADAM_BETA_1;
    powers[1] *= ADAM_BETA_2;
    for (let i = 0; i < weights.length; i++) {
      const g = gradient[i];
      first[i] = ADAM_BETA_1 * first[i] + (1 - ADAM_BETA_1) * g;
      second[i] = ADAM_BETA_2 * second[i] + (1 - ADAM_BETA_2) * g * g;
      const move = first[i] / (1 - powers[0]) / (Math.sqrt(second[i] / (1 - powers[1])) + ADAM_EPSILON);
      weights[i] = weights[i] - rate * (move + this.decay * weights[i]);
    }
  }
}
