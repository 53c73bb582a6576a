/**
 * Abundances of endmembers in a spectrum: the non-negative least squares solution (Lawson and Hanson 1974), and with full constraints also
 * sum to one (Heinz and Chang 2001). An active-set method on the Gram matrix of the endmembers, in f64. Pixels share few sets, so the
 * factor of the matrix of each set is cached. For few endmembers, abundances.wat finds the initial set.
 */
import { loadWasmKernel } from '../../utils/wasm-loader.js';
import { dependentEndmembers, noSimd } from '../errors.js';
import { choleskyFactor } from '../linear-algebra.js';

/** A gain below this, relative to the largest product, counts as 0. */
const GAIN_TOLERANCE = 1e-13;
/** The bits of larger sets do not fit into an integer key, so their factors are not cached. */
const MAX_CACHED_ENDMEMBERS = 30;
const MAX_CACHED_SETS = 4096;
const PAGE_BYTES = 65_536;
/** Up to this number of endmembers, all sets have tables. */
const MAX_TABULATED_ENDMEMBERS = 12;
/** Limit of exchanges of all endmembers with the wrong sign; most pixels need four. */
const MAX_EXCHANGES = 8;

interface Kernel {
  memory: { buffer: ArrayBuffer; grow(pages: number): void };
  wrong(table: number, products: number, count: number, limit: number): number;
}

/** A set of endmembers with non-zero abundances, and the factor of its matrix. */
interface Factored {
  /** Members in ascending order. If abundances sum to one, the first member is moved to the end, because its abundance is the remainder. */
  members: Int32Array;
  /** Number of unknowns. */
  free: number;
  /** Lower triangular factor of the matrix, row by row without gaps. Its diagonal holds inverses. */
  lower: Float64Array;
  /** Right-hand side of the equations for a spectrum of zeros. */
  start: Float64Array;
}

/**
 * Solves min |x - E' a|^2 for one spectrum after another. The result depends on that spectrum alone, not on the cached sets.
 *
 * Invariants: `gram` is E E', symmetric positive definite, row by row. `kept` has the sets by their bits. `tables` has the address of the
 * table of each set in the memory of the kernel, or 0. `products` are at the start of that memory.
 */
export class AbundanceSolver {
  private readonly gram: Float64Array;
  private readonly largest: number;
  private readonly kept = new Map<number, Factored>();
  private readonly kernel: Kernel | undefined;
  private readonly tables: Int32Array;
  private readonly isMember: Uint8Array;
  private readonly products: Float64Array;
  /** The unconstrained solution for the members of a set. */
  private readonly solution: Float64Array;
  /** Lagrange multiplier of the sum-to-one constraint of the last abundances; 0 without the constraint. */
  private multiplier = 0;
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
      const i = Math.floor(at / count);
      const j = at % count;
      let sum = 0;
      for (let b = 0; b < bands; b++) sum += endmembers[i * bands + b] * endmembers[j * bands + b];
      return sum;
    });
    if (!choleskyFactor(this.gram, count)) throw dependentEndmembers();
    this.largest = this.gram.reduce((most, value) => Math.max(most, value), 0);
    this.isMember = new Uint8Array(count);
    this.tables = new Int32Array(count <= MAX_TABULATED_ENDMEMBERS ? 2 ** count : 0);
    if (count <= MAX_TABULATED_ENDMEMBERS) {
      this.kernel = loadWasmKernel<Kernel>(new URL('./abundances.wasm', import.meta.url));
      if (!this.kernel) throw noSimd();
      const bytes = (2 ** count + 1) * Math.ceil(count / 2) * (count + 2) * 16;
      this.kernel.memory.grow(Math.ceil(bytes / PAGE_BYTES));
    }
    this.products = this.kernel
      ? new Float64Array(this.kernel.memory.buffer, 0, count)
      : new Float64Array(count);
    this.solution = new Float64Array(count);
    this.abundances = new Float64Array(count);
  }

  /** `products`: products of the spectrum with each endmember, the first at `at`, `stride` apart. Returns NaN if one is not finite. */
  solve(products: ArrayLike<number>, at: number, stride: number): Float64Array {
    const { count, abundances } = this;
    let scale = this.sumsToOne ? this.largest : 0;
    for (let i = 0; i < count; i++) {
      const product = products[at + i * stride];
      this.products[i] = product;
      scale = Math.max(scale, Math.abs(product));
      abundances[i] = 0;
      this.isMember[i] = 1;
    }
    if (!Number.isFinite(scale)) return abundances.fill(NaN);
    if (this.kernel) this.guess(this.kernel, GAIN_TOLERANCE * scale);
    // Each step lowers the residual and the number of sets is finite; the limit guards against rounding errors.
    for (let round = 0; round < 20 * count; round++) {
      const set = this.factored();
      this.solveSet(set);
      if (!this.stepTo(set)) continue;
      const next = this.largestGain(set, GAIN_TOLERANCE * scale);
      if (next < 0) break;
      this.isMember[next] = 1;
    }
    return abundances;
  }

  /**
   * The sum of squares of the residual of the last spectrum, whose own sum of squares is `square`. Its rounding error is about 1e-15 of
   * `square`.
   */
  residual(square: number): number {
    const { products, abundances: a } = this;
    // E E' a equals the products minus the multiplier wherever a is not 0.
    let sum = square - this.multiplier;
    for (let i = 0; i < this.count; i++) sum -= a[i] * products[i];
    return Math.max(0, sum);
  }

  /**
   * Sets the initial members: exchanges all endmembers with the wrong sign together (Portugal, Judice and Vicente 1994), which finds the
   * set of the solution in most cases.
   */
  private guess(kernel: Kernel, limit: number): void {
    const { count, isMember } = this;
    let key = 2 ** count - 1;
    for (let round = 0; round < MAX_EXCHANGES; round++) {
      if (this.tables[key] === 0) {
        for (let i = 0; i < count; i++) isMember[i] = (key >> i) & 1;
        this.writeTable(kernel, key);
      }
      const wrong = kernel.wrong(this.tables[key], 0, count, limit);
      if (wrong === 0) break;
      key ^= wrong;
    }
    for (let i = 0; i < count; i++) isMember[i] = (key >> i) & 1;
  }

  /**
   * Writes the table of a set for `guess`, two endmembers at a time: the abundance of each member, and the gain of each other endmember.
   * Both are linear in the products.
   */
  private writeTable(kernel: Kernel, key: number): void {
    const { count, isMember, products, tables } = this;
    const set = this.factored();
    const saved = products.slice();
    const pairs = Math.ceil(count / 2);
    const length = 2 * pairs * (count + 2);
    tables[key] = (key + 1) * length * 8;
    const table = new Float64Array(kernel.memory.buffer, tables[key], length);
    const position = (i: number, column: number) => 2 * ((i >> 1) * (count + 2) + column) + (i & 1);
    for (let column = 1; column < count + 2; column++) {
      products.fill(0);
      if (column > 1) products[column - 2] = 1;
      this.solveSet(set);
      const shift = this.sumsToOne ? this.gain(set, set.members[set.free]) : 0;
      for (let k = 0; k < set.members.length; k++) table[position(set.members[k], column)] = this.solution[k];
      for (let i = 0; i < count; i++) {
        if (isMember[i] === 0) table[position(i, column)] = shift - this.gain(set, i);
        if (column > 1) table[position(i, column)] -= table[position(i, 1)];
        else table[position(i, 0)] = isMember[i] - 1;
      }
    }
    products.set(saved);
  }

  /** The factored set of the present members. */
  private factored(): Factored {
    const { count, isMember } = this;
    if (count > MAX_CACHED_ENDMEMBERS) return this.factor();
    let key = 0;
    for (let i = 0; i < count; i++) key |= isMember[i] << i;
    const known = this.kept.get(key);
    if (known) return known;
    if (this.kept.size === MAX_CACHED_SETS) this.kept.clear();
    const made = this.factor();
    this.kept.set(key, made);
    return made;
  }

  /**
   * If abundances sum to one, x - E' a is x minus the first member, minus the differences of the other members from it times their
   * abundances. Solving for these keeps numbers small if endmembers are similar.
   */
  private factor(): Factored {
    const { gram, count, isMember, sumsToOne } = this;
    const members = Int32Array.from({ length: count }, (_, i) => i).filter((i) => isMember[i] === 1);
    const first = members[0];
    if (sumsToOne) members.copyWithin(0, 1)[members.length - 1] = first;
    const free = members.length - Number(sumsToOne);
    const of = (i: number, j: number) => gram[i * count + j];
    const matrix = new Float64Array(free * free);
    const start = new Float64Array(free);
    for (let k = 0, at = 0; k < free; k++) {
      const i = members[k];
      if (sumsToOne) start[k] = of(first, first) - of(i, first);
      for (let l = 0; l < free; l++, at++) {
        const j = members[l];
        matrix[at] = sumsToOne ? of(i, j) - of(first, j) + start[k] : of(i, j);
      }
    }
    const square = choleskyFactor(matrix, free, { least: 0 });
    if (!square) throw dependentEndmembers();
    const lower = new Float64Array((free * (free + 1)) / 2);
    for (let i = 0, at = 0; i < free; i++) {
      for (let k = 0; k < i; k++) lower[at++] = square[i * free + k];
      lower[at++] = 1 / square[i * free + i];
    }
    return { members, free, lower, start };
  }

  private solveSet({ members, free, lower, start }: Factored): void {
    const { products, solution: x, sumsToOne } = this;
    const less = sumsToOne ? products[members[free]] : 0;
    for (let i = 0, at = 0; i < free; i++) {
      let sum = products[members[i]] - less + start[i];
      for (let k = 0; k < i; k++) sum -= lower[at++] * x[k];
      x[i] = sum * lower[at++];
    }
    let rest = 1;
    for (let i = free - 1, at = lower.length; i >= 0; i--) {
      const value = x[i] * lower[--at];
      x[i] = value;
      rest -= value;
      for (let k = i - 1; k >= 0; k--) x[k] -= lower[--at] * value;
    }
    if (sumsToOne) x[free] = rest;
  }

  /**
   * Moves the abundances towards the solution of the set until one of them is 0, and removes members whose abundance is 0. Returns true if
   * the solution was reached.
   */
  private stepTo({ members }: Factored): boolean {
    const { abundances: a, solution: x, isMember } = this;
    const size = members.length;
    let step = 1;
    let blocking = -1;
    for (let k = 0; k < size; k++) {
      if (x[k] > 0) continue;
      const now = a[members[k]];
      const share = now / (now - x[k]) || 0;
      if (share > step) continue;
      step = share;
      blocking = k;
    }
    if (blocking < 0) {
      for (let k = 0; k < size; k++) a[members[k]] = x[k];
      return true;
    }
    for (let k = 0; k < size; k++) {
      const i = members[k];
      a[i] += step * (x[k] - a[i]);
      if (x[k] > 0 || (a[i] > 1e-15 && k !== blocking)) continue;
      a[i] = 0;
      isMember[i] = 0;
    }
    return false;
  }

  /** The endmember outside of the set whose growth lowers the residual most, -1 if no gain exceeds `limit`. */
  private largestGain(set: Factored, limit: number): number {
    const { count, isMember } = this;
    this.multiplier = this.sumsToOne ? this.gain(set, set.members[set.free]) : 0;
    let most = this.multiplier + limit;
    let best = -1;
    for (let i = 0; i < count; i++) {
      if (isMember[i] === 1) continue;
      const gain = this.gain(set, i);
      if (gain <= most) continue;
      most = gain;
      best = i;
    }
    return best;
  }

  /** Minus half the derivative of the residual with respect to an abundance. */
  private gain({ members }: Factored, i: number): number {
    const { gram, solution } = this;
    let sum = this.products[i];
    const row = i * this.count;
    for (let k = 0; k < members.length; k++) sum -= gram[row + members[k]] * solution[k];
    return sum;
  }
}
