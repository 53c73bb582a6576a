/** A time limit for searches. */
import { queryTimedOut } from '../errors.js';
import type { QueryPlan } from './compiled-query-plan.js';

/** Maximum time of one search, which blocks the event loop. */
const TIMEOUT_MS = 5_000;
/** Rows between two clock checks; a power of two. */
const ROWS_PER_CLOCK_CHECK = 4_096;

/** The same plan, whose test throws TW_QUERY_TOO_SLOW after the time limit. */
export function withTimeout(plan: QueryPlan, limit = TIMEOUT_MS): QueryPlan {
  const { test } = plan;
  if (!test) return plan;
  const end = performance.now() + limit;
  let rows = 0;
  const timed: QueryPlan['test'] = (run) => {
    const testRow = test(run);
    return (row) => {
      if ((++rows & (ROWS_PER_CLOCK_CHECK - 1)) === 0 && performance.now() > end)
        throw queryTimedOut(limit / 1000);
      return testRow(row);
    };
  };
  return { ...plan, test: timed };
}
