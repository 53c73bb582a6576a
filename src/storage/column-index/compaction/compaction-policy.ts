/** Which runs of an index are merged, and when. */

/** Sizes in rows. */
export interface CompactionLimits {
  /** More unsorted rows than this are merged. */
  longestTail: number;
  /** Rows that a merge handles between two turns of the event loop. */
  step: number;
}

export const DEFAULT_LIMITS: CompactionLimits = { longestTail: 4_096, step: 4_096 };

/** After a merge each run is at least so many times as long as all shorter ones together. */
const MIN_SIZE_RATIO = 3;

/** A run, as far as this matters here. */
interface RunSize {
  used: number;
  unsorted: number;
  /** Rows that a merge leaves out. */
  gone: number;
}

const liveRows = ({ used, gone }: RunSize) => used - gone;

/** Whether a run is mostly rows that a merge would leave out. */
export function isMostlyDeleted(run: RunSize, { longestTail }: CompactionLimits): boolean {
  return run.gone > liveRows(run) + longestTail;
}

export function isTailCompactionDue(runs: readonly RunSize[], { longestTail }: CompactionLimits): boolean {
  return runs.reduce((sum, { unsorted }) => sum + unsorted, 0) > longestTail;
}

/**
 * The runs to merge with those that have unsorted rows: the shorter ones, up to the first that is `RATIO` times as long as all
 * that are merged. A merge costs as much as its runs have rows, and puts each row into a run that is longer by a constant
 * factor on average. So the cost of a row, over all merges, and the number of runs grow with the logarithm of the number of rows.
 */
export function runsToCompact<R extends RunSize>(runs: readonly R[]): R[] {
  const chosen = runs.filter(({ unsorted }) => unsorted > 0);
  let rows = chosen.reduce((sum, run) => sum + liveRows(run), 0);
  const sorted = runs.filter(({ unsorted }) => unsorted === 0);
  for (const run of sorted.sort((a, b) => liveRows(a) - liveRows(b))) {
    if (liveRows(run) >= MIN_SIZE_RATIO * rows) break;
    chosen.push(run);
    rows += liveRows(run);
  }
  return chosen;
}
