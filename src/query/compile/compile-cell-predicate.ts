/** Tests of rows by their cells. */
import { type Grid, grids } from '../../grid/index.js';
import { isWithin, type mergeRanges, type RunFilter } from '../../storage/index.js';

/**
 * A test of rows by their cells. `decide` is called once for each cell; cells with a key in `inside` pass without it. Consecutive
 * rows often share a cell, so the last result is cached.
 */
export function cellPredicate(
  decide: (grid: Grid, geocode: string) => boolean,
  inside: ReturnType<typeof mergeRanges> = [],
): RunFilter {
  const known = new Map<number, Map<number, boolean>>();
  return ({ columns: { grid, key, precision } }) => {
    let last = { grid: -1, key: -1, precision: -1, passes: false };
    return (row) => {
      const cell = { grid: grid[row], key: key[row], precision: precision[row] };
      if (cell.key === last.key && cell.precision === last.precision && cell.grid === last.grid)
        return last.passes;
      const passes =
        (inside.length > 0 && isWithin(inside, cell.grid, cell.key)) ||
        cachedDecision(known, cell, () =>
          decide(grids[cell.grid], grids[cell.grid].geocode(cell.key, cell.precision)),
        );
      last = { ...cell, passes };
      return passes;
    };
  };
}

function cachedDecision(
  known: Map<number, Map<number, boolean>>,
  { grid, key, precision }: { grid: number; key: number; precision: number },
  decide: () => boolean,
): boolean {
  const level = grid * 256 + precision;
  const answers = known.get(level) ?? new Map<number, boolean>();
  known.set(level, answers);
  const answer = answers.get(key) ?? decide();
  answers.set(key, answer);
  return answer;
}
