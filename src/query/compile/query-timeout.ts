import { tooSlow } from '../errors.js';
import type { Plan } from './query-plan.js';

/** What one search may take, ms: nothing else is answered meanwhile. */
const LIMIT = 5_000;
/** Rows between two looks at the clock; a power of two. */
const ROWS = 4_096;

/** The same plan, which gives up with TW_QUERY_TOO_SLOW when its tests have taken too long. */
export function withDeadline(plan: Plan, limit = LIMIT): Plan {
  const { test } = plan;
  if (!test) return plan;
  const end = performance.now() + limit;
  let rows = 0;
  const timed: Plan['test'] = (run) => {
    const testRow = test(run);
    return (row) => {
      if ((++rows & (ROWS - 1)) === 0 && performance.now() > end) throw tooSlow(limit / 1000);
      return testRow(row);
    };
  };
  return { ...plan, test: timed };
}
