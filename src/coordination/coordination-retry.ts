import { backOff } from '../async/index.js';
import { messageOf, TilewrightError } from '../errors.js';
import { coordinationUnavailable, leaseGone, outcomeUnknown } from './errors.js';

/**
 * Repeats `attempt` until the store has answered, for at most `timeoutMs`.
 *
 * The transaction of `attempt` must compare something that it changes, so that at most one attempt takes effect, even if an earlier one
 * reaches the store late. `uncertain` is true if the outcome of an earlier attempt is unknown; `attempt` must then check whether that
 * one was made. An answer also settles the earlier attempts; a refusal of a later attempt does not, and is thrown as
 * TW_DHT_OUTCOME_UNKNOWN. At the timeout: TW_DHT_OUTCOME_UNKNOWN if an attempt may still take effect, otherwise
 * TW_DHT_COORDINATION_UNAVAILABLE.
 */
export async function retryUntilAnswered<T>(
  timeoutMs: number,
  attempt: (timeoutMs: number, uncertain: boolean) => Promise<T>,
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

/** The error for the caller if an attempt fails with `error` after an attempt with an unknown outcome. */
function errorAfterUncertainAttempt(uncertain: TilewrightError | undefined, error: unknown): unknown {
  // A key that was put under a lease does not outlive the lease.
  if (uncertain === undefined || leaseGone.is(error)) return error;
  const { code, status, message } = uncertain;
  return new TilewrightError(code, status, `${message}; the next attempt failed: ${messageOf(error)}`, {
    cause: error,
  });
}
