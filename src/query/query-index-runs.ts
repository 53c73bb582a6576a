import type { ColumnIndex, IndexRun } from '../storage/index.js';

interface RunVisitor<T> {
  add(row: number): void;
  result(): T;
}

/** Visits the selected rows of an index with one visitor for each run. Returns the results of the visitors. */
export function visitRuns<T>(
  index: ColumnIndex,
  selection: Parameters<ColumnIndex['forEach']>[0],
  visit: (rows: IndexRun) => RunVisitor<T>,
): T[] {
  const visitors: RunVisitor<T>[] = [];
  index.forEach(selection, (rows) => {
    const visitor = visit(rows);
    visitors.push(visitor);
    return visitor.add;
  });
  return visitors.map(({ result }) => result());
}
