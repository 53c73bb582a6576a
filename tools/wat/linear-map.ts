/** Straight-line code that multiplies vectors of four pixels' or channels' values by a small constant matrix. */
import { type Code, f32x4, type Local, type Scope, ZERO } from './emit.js';
import type { Matrix } from './winograd.js';

export type MultiplyAdd = (factor: Code, value: Code, sum: Code) => Code;

/** Multiplies and adds, rounding twice. */
export const plain: MultiplyAdd = (factor, value, sum) => f32x4('add', sum, f32x4('mul', factor, value));
/** Rounds once if the processor has such an instruction. */
export const relaxed: MultiplyAdd = (factor, value, sum) => f32x4('relaxed_madd', factor, value, sum);

interface Term {
  factor: number;
  value: Code;
}

/**
 * Multiplies inputs by a matrix. Rows, or columns, that differ only in signs share their sums and differences, which halves the work: the points
 * of Winograd's matrices come in pairs of opposite signs.
 */
export class LinearMap {
  private readonly constants = new Map<number, Local>();

  constructor(
    private readonly scope: Scope,
    private readonly multiplyAdd: MultiplyAdd,
  ) {}

  /** Statements that set the constants; they come before all others of the function. */
  setConstants(): Code[] {
    return [...this.constants].map(([value, local]) =>
      local.set(`(v128.const f32x4${` ${value}`.repeat(4)})`),
    );
  }

  /** Statements that set `results` to the matrix times `inputs`. No result is an input. `temporaries`: at least as many as inputs. */
  apply(
    matrix: Matrix,
    inputs: readonly Local[],
    results: readonly Local[],
    temporaries: readonly Local[],
  ): Code[] {
    const columns = this.withPairedColumns(matrix, inputs, temporaries);
    const statements = [...columns.statements];
    const done = new Set<number>();
    for (const [r, row] of columns.matrix.entries()) {
      if (done.has(r)) continue;
      const terms = row.map((factor, c) => ({ factor, value: columns.inputs[c] }));
      const twin = columns.matrix.findIndex((other, at) => at > r && isTwin(row, other));
      if (twin < 0) statements.push(results[r].set(this.sum(terms)));
      else {
        done.add(twin);
        const isSame = (_: unknown, c: number) => columns.matrix[twin]![c] === row[c];
        const [same, opposite] = [terms.filter(isSame), terms.filter((term, c) => !isSame(term, c))];
        const [a, b] = [results[r], results[twin]];
        const first = temporaries.at(-1)!;
        statements.push(
          first.set(this.sum(same)),
          b.set(this.sum(opposite)),
          a.set(f32x4('add', first.get, b.get)),
          b.set(f32x4('sub', first.get, b.get)),
        );
      }
    }
    return statements;
  }

  /** Replaces pairs of columns with the same absolute values by the sum and the difference of their inputs. */
  private withPairedColumns(matrix: Matrix, inputs: readonly Local[], temporaries: readonly Local[]) {
    const column = (c: number) => matrix.map((row) => row[c]);
    const statements: Code[] = [];
    const values = inputs.map(({ get }) => get);
    const changed = matrix.map((row) => [...row]);
    const free = [...temporaries];
    const done = new Set<number>();
    for (const c of inputs.keys()) {
      const twin = inputs.findIndex((_, at) => at > c && !done.has(at) && isTwin(column(c), column(at)));
      if (done.has(c) || twin < 0) continue;
      done.add(twin);
      const [sum, difference] = [free.shift()!, free.shift()!];
      statements.push(
        sum.set(f32x4('add', values[c], values[twin])),
        difference.set(f32x4('sub', values[c], values[twin])),
      );
      [values[c], values[twin]] = [sum.get, difference.get];
      for (const row of changed) {
        const isSame = row[c] === row[twin];
        [row[c], row[twin]] = isSame ? [row[c], 0] : [0, row[c]];
      }
    }
    return { statements, inputs: values, matrix: changed };
  }

  private sum(terms: readonly Term[]): Code {
    const [first, ...others] = terms
      .filter(({ factor }) => factor !== 0)
      .toSorted((a, b) => Number(b.factor === 1) - Number(a.factor === 1));
    if (!first) return ZERO;
    const start = first.factor === 1 ? first.value : f32x4('mul', this.constant(first.factor), first.value);
    return others.reduce((sum, { factor, value }) => {
      if (factor === 1) return f32x4('add', sum, value);
      if (factor === -1) return f32x4('sub', sum, value);
      return this.multiplyAdd(this.constant(factor), value, sum);
    }, start);
  }

  private constant(value: number): Code {
    const known = this.constants.get(value) ?? this.scope.v128(`constant${this.constants.size}`);
    this.constants.set(value, known);
    return known.get;
  }
}

/** True if two lists have equal absolute values, some with equal signs and some with opposite signs. */
function isTwin(a: readonly number[], b: readonly number[]): boolean {
  const isPair = a.every((value, i) => Math.abs(value) === Math.abs(b[i]));
  const used = a.flatMap((value, i) => (value === 0 ? [] : [value === b[i]]));
  return isPair && used.includes(true) && used.includes(false);
}
