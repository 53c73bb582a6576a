/** Minimises a smooth function by L-BFGS (Nocedal and Wright 2006, algorithms 7.4 and 7.5) with a backtracking line search. */

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

export interface MinimiseOptions {
  iterations: number;
  /**
   * Multiplies a gradient by a symmetric positive definite approximation of the inverse Hessian, up to a factor. It replaces the identity
   * as initial approximation and saves most iterations if inputs are correlated, as neighbouring bands are.
   */
  precondition?: ((gradient: Float64Array) => Float64Array) | undefined;
  onIteration?: (iteration: number, value: number) => void;
}

/** Returns the point with the smallest value that was found. All arithmetic is f64 in a fixed order. */
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
