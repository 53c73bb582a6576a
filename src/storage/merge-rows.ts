/** Merging the tail into the sorted rows, in steps of a few milliseconds between which the rows are used and changed. */
import { type Columns, columnNames } from './columns.js';
import { Rows } from './rows.js';

/** Rows of one step. */
const STEP = 8_192;
/** In place of a row or a code: there is none. */
const NONE = 2 ** 32 - 1;

type Column = Columns[keyof Columns];
type Compare = (a: number, b: number) => number;

export interface Merged {
  rows: Rows;
  /** The new row of an old one; undefined where it has been left out. */
  moved: (row: number) => number | undefined;
}

/**
 * New rows with the tiles of `old`: those that `old` has when the merge begins are sorted, those that are added meanwhile
 * are the tail; what is removed meanwhile has its mark. The result is good in the turn in which it is given. Rows that were
 * removed before, but for those in `kept`, and texts and scene names that nobody uses, are left out.
 */
export function* mergeRows(old: Rows, kept: ReadonlySet<number>): Generator<void, Merged> {
  const begun = old.used;
  const sorted = yield* numbers(0, old.cells.rows);
  const tail = yield* numbers(sorted.length, begun);
  const byCell: Compare = (a, b) => old.compareCells(a, b);
  const byTime: Compare = (a, b) => old.compareNewest(a, b);
  const cellOrder = yield* mergeSorted(sorted, yield* sort(tail, byCell), byCell);
  const timeOrder = yield* mergeSorted(old.newest, yield* sort(tail, byTime), byTime);

  // The new row of each old one.
  const target = new Uint32Array(begun).fill(NONE);
  let count = 0;
  const rows = Rows.empty(old.names, begun);
  const copies = new Copies(old, rows);
  yield* inSteps(begun, (from, to) => {
    const wanted = cellOrder.subarray(from, to).filter((row) => old.removed[row] === 0 || kept.has(row));
    for (let i = 0; i < wanted.length; i++) target[wanted[i]] = count++;
    copies.add(wanted);
    rows.cells.extend(count);
  });
  const newest = new Uint32Array(count);
  const rank = new Uint32Array(count);
  let place = 0;
  yield* inSteps(begun, (from, to) => {
    for (let i = from; i < to; i++) {
      const row = target[timeOrder[i]];
      if (row === NONE) continue;
      rank[row] = place;
      newest[place++] = row;
    }
  });
  rows.newest = newest;
  rows.rank = rank;

  copies.add(Uint32Array.from({ length: old.used - begun }, (_, i) => begun + i));
  const moved = (row: number) => {
    const to = row < begun ? target[row] : count + row - begun;
    return to === NONE ? undefined : to;
  };
  for (const row of old.removals) {
    const to = moved(row);
    if (to !== undefined) rows.remove(to);
  }
  return { rows, moved };
}

/** Calls `work` for the numbers below `count`, some at a time. */
function* inSteps(count: number, work: (from: number, to: number) => void): Generator<void> {
  for (let from = 0; from < count; from += STEP) {
    work(from, Math.min(from + STEP, count));
    yield;
  }
}

function* numbers(first: number, end: number): Generator<void, Uint32Array> {
  const all = new Uint32Array(end - first);
  yield* inSteps(all.length, (from, to) => {
    for (let i = from; i < to; i++) all[i] = first + i;
  });
  return all;
}

function* sort(rows: Uint32Array, compare: Compare): Generator<void, Uint32Array> {
  if (rows.length <= STEP) {
    const sorted = rows.toSorted(compare);
    yield;
    return sorted;
  }
  const half = rows.length >> 1;
  const list = yield* sort(rows.subarray(0, half), compare);
  return yield* mergeSorted(list, yield* sort(rows.subarray(half), compare), compare);
}

/** The rows of two sorted lists in one. */
function* mergeSorted(list: Uint32Array, other: Uint32Array, compare: Compare): Generator<void, Uint32Array> {
  const all = new Uint32Array(list.length + other.length);
  let i = 0;
  let j = 0;
  yield* inSteps(all.length, (from, to) => {
    for (let at = from; at < to; at++) {
      const takeOther = i === list.length || (j < other.length && compare(other[j], list[i]) < 0);
      all[at] = takeOther ? other[j++] : list[i++];
    }
  });
  return all;
}

/** Adds copies of some rows of `from` to the end of `to`, with the texts and scene names that they use. */
class Copies {
  /** By the codes of `from`. */
  private readonly scenes: Uint32Array;

  constructor(
    private readonly from: Rows,
    private readonly to: Rows,
  ) {
    this.scenes = new Uint32Array(from.scenes.names.length).fill(NONE);
  }

  add(source: Uint32Array): void {
    const { from, to } = this;
    const first = to.reserve(source.length);
    for (const name of columnNames) gather(from.columns[name], source, to.columns[name], first);
    const { scene, suffix } = to.columns;
    for (let row = first; row < to.used; row++) {
      scene[row] = this.scene(scene[row]);
      suffix[row] = to.texts.copy(from.texts, suffix[row]);
    }
  }

  private scene(code: number): number {
    const known = this.scenes[code] ?? NONE;
    if (known !== NONE) return known;
    const added = this.to.scenes.add(this.from.scenes.names[code]);
    if (code < this.scenes.length) this.scenes[code] = added;
    return added;
  }
}

/** `to[first + i] = from[source[i]]`, of two columns of one type. */
function gather(from: Column, source: Uint32Array, to: Column, first: number): void {
  const [read, write] = [ofFourKinds(from), ofFourKinds(to)];
  for (let i = 0; i < source.length; i++) write[first + i] = read[source[i]];
}

/** V8 makes fast code for four kinds of arrays in one place, not for five. */
function ofFourKinds(column: Column): Column {
  return column instanceof Float32Array
    ? new Uint32Array(column.buffer, column.byteOffset, column.length)
    : column;
}
