import { backOff } from '../async/index.js';
import { messageOf, TilewrightError } from '../errors.js';
import { coordinationUnavailable, leaseGone, outcomeUnknown } from './errors.js';

/**
 * Repeats `attempt` until it has an answer, for at most `patience` ms.
 *
 * The transaction of `attempt` compares what it changes, so at most one attempt takes effect, even if an earlier one reaches the
 * store late. `uncertain` tells it whether the outcome of an earlier attempt is unknown; it must then check whether that one was made.
 * An answer settles the earlier attempts, too. A refusal of a later attempt says nothing about them: TW_DHT_OUTCOME_UNKNOWN. At the end
 * of `patience`: TW_DHT_OUTCOME_UNKNOWN if an attempt may still be made, otherwise TW_DHT_COORDINATION_UNAVAILABLE.
 */
export async function retryUntilAnswered<T>(
  timeoutMs: number,
  attempt: (left: number, uncertain: boolean) => Promise<T>,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let uncertain: TilewrightError | undefined;
  for (let attempts = 0; ; attempts++) {
    try {
      return await attempt(Math.max(0, deadline - performance.now()), uncertain !== undefined);
    } catch (error) {
      if (outcomeUnknown.is(error)) uncertain = error;
      else if (!coordinationUnavailable.is(error)) throw errorAfterUncertainAttempt(uncertain, error);
      if (performance.now() >= deadline) throw uncertain ?? error;
    }
    await backOff(attempts);
  }
}

/** The error for the caller if an attempt fails with `error` after one whose outcome is unknown. */
function errorAfterUncertainAttempt(uncertain: TilewrightError | undefined, error: unknown): unknown {
  // Nothing that was put under a lease outlives it.
  if (uncertain === undefined || leaseGone.is(error)) return error;
  const { code, status, message } = uncertain;
  return new TilewrightError(code, status, `${message}; the next attempt failed: ${messageOf(error)}`, {
    cause: error,
  });
}
