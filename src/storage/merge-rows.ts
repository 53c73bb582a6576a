/** Merging the tail into the sorted rows, in steps of a few milliseconds between which the rows are used and changed. */
import { columnNames } from './columns.js';
import { Rows } from './rows.js';

/** Rows of one step. */
const STEP = 16_384;
/** Rows that fit behind the merged ones before all columns must be copied to larger ones. */
const ROOM = 65_536;
/** In place of a row: there is none. */
const NONE = 2 ** 32 - 1;

export interface Merged {
  rows: Rows;
  /** The new row of an old one; undefined where it has been left out. */
  moved: (row: number) => number | undefined;
}

/**
 * New rows with the tiles of `old`: those that `old` has when the merge begins are sorted, those that are added meanwhile
 * are the tail; what is removed meanwhile has its mark. The result is good in the turn in which it is given. Rows that were
 * removed before, and texts and scene names that nobody uses, are left out.
 */
export function* mergeRows(old: Rows): Generator<void, Merged> {
  const begun = old.used;
  const sorted = old.cells.rows;
  const tail = Uint32Array.from({ length: begun - sorted }, (_, i) => sorted + i);
  const identity = new Uint32Array(sorted).map((_, row) => row);
  yield;
  const byCell = yield* mergeSorted(identity, tail, (a, b) => old.compareCells(a, b));
  const byTime = yield* mergeSorted(old.newest, tail, (a, b) => old.compareNewest(a, b));

  // The new row of each old one. From here on a row that is removed is marked at the end.
  const target = new Uint32Array(begun).fill(NONE);
  const source = byCell.filter((row) => !old.removed[row]);
  source.forEach((row, i) => {
    target[row] = i;
  });
  yield;

  const rows = new Rows(source.length + ROOM, old.names);
  for (let from = 0; from < source.length; from += STEP) {
    copyRows(old, source.subarray(from, from + STEP), rows);
    rows.cells.extend(rows.used);
    yield;
  }
  rows.newest = byTime.map((row) => target[row]).filter((row) => row !== NONE);
  yield;

  const late = Uint32Array.from({ length: old.used - begun }, (_, i) => begun + i);
  copyRows(old, late, rows);
  source.forEach((row, i) => {
    rows.removed[i] = old.removed[row];
  });
  late.forEach((row, i) => {
    rows.removed[source.length + i] = old.removed[row];
  });
  const moved = (row: number) =>
    row >= begun ? source.length + row - begun : target[row] === NONE ? undefined : target[row];
  return { rows, moved };
}

/** The rows of a sorted list and of another one that is not, all sorted. */
function* mergeSorted(
  list: Uint32Array,
  unsorted: Uint32Array,
  compare: (a: number, b: number) => number,
): Generator<void, Uint32Array> {
  const other = unsorted.toSorted(compare);
  yield;
  const all = new Uint32Array(list.length + other.length);
  for (let i = 0, j = 0; i + j < all.length; ) {
    const at = i + j;
    const takeOther = i === list.length || (j < other.length && compare(other[j], list[i]) < 0);
    all[at] = takeOther ? other[j++] : list[i++];
    if (at % STEP === 0) yield;
  }
  return all;
}

/** Adds copies of some rows of `from` to the end of `to`. */
function copyRows(from: Rows, source: Uint32Array, to: Rows): void {
  const first = to.used;
  to.reserve(source.length);
  for (const name of columnNames) {
    const [read, write] = [from.columns[name], to.columns[name]];
    for (let i = 0; i < source.length; i++) write[first + i] = read[source[i]];
  }
  const { scene, suffix } = to.columns;
  for (let row = first; row < to.used; row++) {
    scene[row] = to.scenes.add(from.scenes.names[scene[row]]);
    suffix[row] = to.texts.copy(from.texts, suffix[row]);
  }
}
