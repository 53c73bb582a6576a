/**
 * Abundances of endmembers in a spectrum: the least squares solution that is not negative (Lawson and Hanson 1974), and, if it is fully
 * constrained, adds up to 1 (Heinz and Chang 2001). An active set over the Gram matrix of the endmembers, in f64.
 */
import { dependentEndmembers } from '../errors.js';

/** A multiplier below this, relative to the size of the products, is 0. */
const TOLERANCE = 1e-12;
/** A remainder of a diagonal below this share of it means that endmembers depend on each other. */
const DEPENDENT = 1e-13;

/**
 * Solves min |x - E' a|^2 for one spectrum after another. The result depends on that spectrum alone.
 *
 * Invariant: `gram` is E E', symmetric positive definite, row by row.
 */
export class AbundanceSolver {
  private readonly gram: Float64Array;
  private readonly lower: Float64Array;
  /** The factor of the Gram matrix of all endmembers, and its inverse times ones. */
  private readonly whole: Float64Array;
  private readonly ones: Float64Array;
  private readonly set: Int32Array;
  private readonly first: Float64Array;
  private readonly second: Float64Array;
  private readonly passive: Uint8Array;
  /** The abundances of the last spectrum. */
  readonly abundances: Float64Array;

  /** `endmembers`: count x bands. Throws TW_ANALYSIS_DEPENDENT if one is a mixture of others. */
  constructor(
    endmembers: Float64Array,
    private readonly count: number,
    private readonly sumsToOne: boolean,
  ) {
    const bands = endmembers.length / count;
    this.gram = Float64Array.from({ length: count * count }, (_, at) => {
      const [i, j] = [Math.floor(at / count), at % count];
      let sum = 0;
      for (let b = 0; b < bands; b++) sum += endmembers[i * bands + b]! * endmembers[j * bands + b]!;
      return sum;
    });
    this.lower = new Float64Array(count * count);
    this.set = new Int32Array(count);
    this.first = new Float64Array(count);
    this.second = new Float64Array(count);
    this.passive = new Uint8Array(count);
    this.abundances = new Float64Array(count);
    this.passive.fill(1);
    if (this.factor(this.collect()) >= 0) throw dependentEndmembers();
    this.whole = this.lower.slice();
    this.ones = new Float64Array(count).fill(1);
    this.substitute(this.whole, this.ones, count);
  }

  /** `products`: those of the spectrum with each endmember, the first at `at`, `stride` apart. */
  solve(products: ArrayLike<number>, at: number, stride: number): Float64Array {
    const { count, abundances: a, passive } = this;
    this.start(products, at, stride);
    let scale = 1e-300;
    for (let i = 0; i < count; i++) scale = Math.max(scale, Math.abs(products[at + i * stride]!));
    // Each round lowers the residual, and there are finitely many sets; the bound is for rounding.
    for (let round = 0; round < 20 * count; round++) {
      const size = this.collect();
      if (size > 0) {
        const shift = this.solveSet(size, products, at, stride);
        const step = this.feasibleStep(size);
        for (let k = 0; k < size; k++) {
          const i = this.set[k]!;
          a[i] = step === 1 ? this.first[k]! : a[i]! + step * (this.first[k]! - a[i]!);
        }
        if (step < 1) {
          this.dropZeros(size);
          continue;
        }
        const next = this.largestMultiplier(products, at, stride, shift);
        if (next < 0 || this.multiplier <= TOLERANCE * scale) return a;
        passive[next] = 1;
        continue;
      }
      const next = this.largestMultiplier(products, at, stride, 0);
      if (next < 0 || this.multiplier <= TOLERANCE * scale) return a;
      passive[next] = 1;
    }
    return a;
  }

  /**
   * The sum of the squares of what the last abundances leave of a spectrum, of which the sum of squares is `square`. Rounding leaves
   * about 1e-15 of that.
   */
  residual(products: ArrayLike<number>, at: number, stride: number, square: number): number {
    const { gram, count, abundances: a } = this;
    let sum = square;
    for (let i = 0; i < count; i++) {
      if (a[i] === 0) continue;
      let row = -2 * products[at + i * stride]!;
      for (let j = 0; j < count; j++) row += gram[i * count + j]! * a[j]!;
      sum += a[i]! * row;
    }
    return Math.max(0, sum);
  }

  private multiplier = 0;

  /** The members that the unconstrained solution has, in equal shares. */
  private start(products: ArrayLike<number>, at: number, stride: number): void {
    const { count, abundances: a, passive } = this;
    for (let i = 0; i < count; i++) this.first[i] = products[at + i * stride]!;
    this.substitute(this.whole, this.first, count);
    if (this.sumsToOne) this.toSumOne(this.ones, count);
    let kept = 0;
    for (let i = 0; i < count; i++) {
      passive[i] = Number(this.first[i]! > 0);
      kept += passive[i]!;
    }
    for (let i = 0; i < count; i++) a[i] = passive[i] === 1 && this.sumsToOne ? 1 / kept : 0;
  }

  private collect(): number {
    let size = 0;
    for (let i = 0; i < this.count; i++) if (this.passive[i] === 1) this.set[size++] = i;
    return size;
  }

  /** Cholesky factor of the Gram matrix of the set; the row where it has none, or -1. */
  private factor(size: number): number {
    const { lower, set, count } = this;
    for (let i = 0; i < size; i++)
      for (let j = 0; j <= i; j++) {
        const value = this.gram[set[i]! * count + set[j]!]!;
        let sum = value;
        for (let k = 0; k < j; k++) sum -= lower[i * count + k]! * lower[j * count + k]!;
        if (i !== j) lower[i * count + j] = sum / lower[j * count + j]!;
        else if (sum > DEPENDENT * value) lower[i * count + i] = Math.sqrt(sum);
        else return i;
      }
    return -1;
  }

  /** Leaves the solution without bounds of the set in `first`. Returns the multiplier of the sum. */
  private solveSet(size: number, products: ArrayLike<number>, at: number, stride: number): number {
    const { first, set } = this;
    const second = this.second;
    this.factor(size);
    for (let k = 0; k < size; k++) first[k] = products[at + set[k]! * stride]!;
    this.substitute(this.lower, first, size);
    if (!this.sumsToOne) return 0;
    second.fill(1, 0, size);
    this.substitute(this.lower, second, size);
    return this.toSumOne(second, size);
  }

  /** Makes the solution in `first` add up to 1; `ones` is the inverse of its matrix times ones. Returns the multiplier. */
  private toSumOne(ones: Float64Array, size: number): number {
    const { first } = this;
    let [sum, total] = [0, 0];
    for (let k = 0; k < size; k++) {
      sum += first[k]!;
      total += ones[k]!;
    }
    const shift = (sum - 1) / total;
    for (let k = 0; k < size; k++) first[k]! -= shift * ones[k]!;
    return shift;
  }

  private substitute(lower: Float64Array, x: Float64Array, size: number): void {
    const { count } = this;
    for (let i = 0; i < size; i++) {
      let sum = x[i]!;
      for (let k = 0; k < i; k++) sum -= lower[i * count + k]! * x[k]!;
      x[i] = sum / lower[i * count + i]!;
    }
    for (let i = size - 1; i >= 0; i--) {
      let sum = x[i]!;
      for (let k = i + 1; k < size; k++) sum -= lower[k * count + i]! * x[k]!;
      x[i] = sum / lower[i * count + i]!;
    }
  }

  /** How far from the abundances to the solution of the set none becomes negative, 0 to 1. */
  private feasibleStep(size: number): number {
    let step = 1;
    for (let k = 0; k < size; k++) {
      const now = this.abundances[this.set[k]!]!;
      const then = this.first[k]!;
      if (then <= 0) step = Math.min(step, now <= 0 ? 0 : now / (now - then));
    }
    return step;
  }

  /** Takes out of the set the members that the step has brought to 0. */
  private dropZeros(size: number): void {
    const { abundances: a, set, first, passive } = this;
    let isDropped = false;
    let least = -1;
    for (let k = 0; k < size; k++) {
      const i = set[k]!;
      if (first[k]! > 0) continue;
      if (least < 0 || a[i]! < a[least]!) least = i;
      if (a[i]! > 1e-15) continue;
      a[i] = 0;
      passive[i] = 0;
      isDropped = true;
    }
    if (isDropped) return;
    a[least] = 0;
    passive[least] = 0;
  }

  /** The member outside of the set whose growth lowers the residual most; -1 for none. */
  private largestMultiplier(products: ArrayLike<number>, at: number, stride: number, shift: number): number {
    const { gram, count, passive, abundances: a } = this;
    let best = -1;
    this.multiplier = 0;
    for (let i = 0; i < count; i++) {
      if (passive[i] === 1) continue;
      let value = products[at + i * stride]! - shift;
      for (let j = 0; j < count; j++) value -= gram[i * count + j]! * a[j]!;
      if (value <= this.multiplier) continue;
      this.multiplier = value;
      best = i;
    }
    return best;
  }
}
