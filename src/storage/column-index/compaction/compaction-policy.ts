/** Decides which runs of an index are merged, and when. */

export interface CompactionLimits {
  /** Maximum number of unsorted rows before a merge. */
  maxTailRows: number;
  /** Rows that a merge processes between two turns of the event loop. */
  rowsPerStep: number;
}

export const DEFAULT_LIMITS: CompactionLimits = { maxTailRows: 4_096, rowsPerStep: 4_096 };

/** After a merge, each run is at least this many times as long as all shorter ones together. */
const MIN_SIZE_RATIO = 3;

/** Numbers of rows of a run. */
interface RunSize {
  /** All rows: sorted, unsorted and obsolete ones. */
  rowCount: number;
  unsorted: number;
  /** Rows that a merge drops. */
  obsolete: number;
}

const liveRows = ({ rowCount, obsolete }: RunSize) => rowCount - obsolete;

/** True if a merge would drop most rows of a run. */
export function isMostlyDeleted(run: RunSize, { maxTailRows }: CompactionLimits): boolean {
  return run.obsolete > liveRows(run) + maxTailRows;
}

export function isTailCompactionDue(runs: readonly RunSize[], { maxTailRows }: CompactionLimits): boolean {
  return runs.reduce((sum, { unsorted }) => sum + unsorted, 0) > maxTailRows;
}

/**
 * The runs to merge: those with unsorted rows and the shorter ones, up to the first that is `MIN_SIZE_RATIO` times as long as all
 * merged runs. The cost of a merge is proportional to its rows, and each row moves to a run that is longer by a constant factor on
 * average. So the total cost of a row, over all merges, and the number of runs are logarithmic in the number of rows.
 */
export function runsToCompact<R extends RunSize>(runs: readonly R[]): R[] {
  const merged = runs.filter(({ unsorted }) => unsorted > 0);
  let rows = merged.reduce((sum, run) => sum + liveRows(run), 0);
  const sorted = runs.filter(({ unsorted }) => unsorted === 0);
  for (const run of sorted.sort((a, b) => liveRows(a) - liveRows(b))) {
    if (liveRows(run) >= MIN_SIZE_RATIO * rows) break;
    merged.push(run);
    rows += liveRows(run);
  }
  return merged;
}
