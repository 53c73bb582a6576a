/** Matrix products on the heap, in panels of eight columns. */
import { FLOAT32_BYTES, roundUpTo, type WasmHeap } from './heap.js';

/** Columns and rows that the WebAssembly computes at a time. */
export const PANEL_WIDTH = 8;
export const PANEL_ROWS = 4;

interface Matrix {
  address: number;
  /** Number of values between consecutive rows, and between consecutive columns. */
  row: number;
  column: number;
}

/** Writes the columns of b [k,n] as panels without gaps, which take `roundUpTo(PANEL_WIDTH, n) * k` floats. */
export function packPanels({ run }: WasmHeap, b: Matrix, k: number, n: number, to: number): void {
  for (let first = 0; first < n; first += PANEL_WIDTH) {
    const from = b.address + first * b.column * FLOAT32_BYTES;
    const target = to + first * k * FLOAT32_BYTES;
    const columns = Math.min(PANEL_WIDTH, n - first);
    if (b.column === 1)
      run.copyRuns(k, columns, from, b.row * FLOAT32_BYTES, target, PANEL_WIDTH * FLOAT32_BYTES);
    else
      run.copyStrided(
        k,
        columns,
        from,
        b.row * FLOAT32_BYTES,
        b.column * FLOAT32_BYTES,
        target,
        PANEL_WIDTH * FLOAT32_BYTES,
      );
  }
}

/** Number of products that are summed before they are added to the total. */
const BLOCK_TERMS = 32;

/**
 * Blocked summation, because a long running sum of float32 loses digits. The sums are in `total` after `finish`; both regions are
 * initialised with zeros.
 */
export function blockedSum(heap: WasmHeap, length: number, partial: number, total: number) {
  heap.float32View(partial, length).fill(0);
  heap.float32View(total, length).fill(0);
  let count = 0;
  const finish = () => {
    heap.run.addRuns(1, length, partial, 0, total, 0);
    heap.float32View(partial, length).fill(0);
    count = 0;
  };
  return {
    /** Call it after each product that was added to `partial`. */
    added: () => {
      if (++count === BLOCK_TERMS) finish();
    },
    finish,
  };
}

interface Product {
  m: number;
  n: number;
  k: number;
  /** Up to three rows after the last one are read. */
  a: Matrix;
  /** b, packed. */
  panels: number;
  /** Initial values of the sums of each column, up to a complete panel. */
  start: number;
  /** [m,n] without gaps. */
  c: number;
  /** Memory for `roundUpTo(PANEL_ROWS, m) * PANEL_WIDTH` floats. */
  edge: number;
}

export function gemm({ run }: WasmHeap, { m, n, k, a, panels, start, c, edge }: Product): void {
  const rows = roundUpTo(PANEL_ROWS, m);
  for (let first = 0; first < n; first += PANEL_WIDTH) {
    const columns = Math.min(PANEL_WIDTH, n - first);
    const fits = rows === m && columns === PANEL_WIDTH;
    const target = c + first * FLOAT32_BYTES;
    run.multiplyPanel(
      rows,
      1,
      k,
      a.address,
      a.row * FLOAT32_BYTES,
      a.column * FLOAT32_BYTES,
      0,
      PANEL_ROWS * a.row * FLOAT32_BYTES,
      panels + first * k * FLOAT32_BYTES,
      PANEL_WIDTH * FLOAT32_BYTES,
      fits ? target : edge,
      (fits ? n : PANEL_WIDTH) * FLOAT32_BYTES,
      start + first * FLOAT32_BYTES,
    );
    if (!fits) run.copyRuns(m, columns, edge, PANEL_WIDTH * FLOAT32_BYTES, target, n * FLOAT32_BYTES);
  }
}
