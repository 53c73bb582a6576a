/** Products of matrices on the heap, in panels of eight columns. */
import { BYTES, type Heap, upTo } from './wasm-heap.js';

/** Columns and rows that the WebAssembly computes at once. */
export const PANEL = 8;
export const ROWS = 4;

export interface Matrix {
  address: number;
  /** Values from a row, and from a column, to the next. */
  row: number;
  column: number;
}

/** Writes the columns of b [k,n] as panels, each without gaps; they take `upTo(PANEL, n) * k` floats. */
export function pack({ run }: Heap, b: Matrix, k: number, n: number, to: number): void {
  for (let first = 0; first < n; first += PANEL) {
    const from = b.address + first * b.column * BYTES;
    const target = to + first * k * BYTES;
    const columns = Math.min(PANEL, n - first);
    if (b.column === 1) run.copyRuns(k, columns, from, b.row * BYTES, target, PANEL * BYTES);
    else run.copyStrided(k, columns, from, b.row * BYTES, b.column * BYTES, target, PANEL * BYTES);
  }
}

/** Products that are added up before they are added to the sum of all. */
const ADDED_AT_ONCE = 32;

/** Blocked summation: a long running sum of float32 loses digits. The sums are in `total` after `finish`; both regions begin with zeros. */
export function blockedSum(heap: Heap, length: number, partial: number, total: number) {
  heap.floats(partial, length).fill(0);
  heap.floats(total, length).fill(0);
  let count = 0;
  const finish = () => {
    heap.run.addRuns(1, length, partial, 0, total, 0);
    heap.floats(partial, length).fill(0);
    count = 0;
  };
  return {
    /** Call after each product that was added to `partial`. */
    added: () => {
      if (++count === ADDED_AT_ONCE) finish();
    },
    finish,
  };
}

export interface Product {
  m: number;
  n: number;
  k: number;
  /** Up to three rows behind the last are read. */
  a: Matrix;
  /** b, packed. */
  panels: number;
  /** What the sums of each column begin at, up to a whole panel. */
  start: number;
  /** [m,n] without gaps. */
  c: number;
  /** Memory for `upTo(ROWS, m) * PANEL` floats. */
  edge: number;
}

export function multiply({ run }: Heap, { m, n, k, a, panels, start, c, edge }: Product): void {
  const rows = upTo(ROWS, m);
  for (let first = 0; first < n; first += PANEL) {
    const columns = Math.min(PANEL, n - first);
    const fits = rows === m && columns === PANEL;
    const target = c + first * BYTES;
    run.multiplyPanel(
      ...[rows, 1, k, a.address, a.row * BYTES, a.column * BYTES, 0, ROWS * a.row * BYTES],
      ...[panels + first * k * BYTES, PANEL * BYTES],
      ...(fits ? [target, n * BYTES] : [edge, PANEL * BYTES]),
      start + first * BYTES,
    );
    if (!fits) run.copyRuns(m, columns, edge, PANEL * BYTES, target, n * BYTES);
  }
}
