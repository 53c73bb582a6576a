import { setTimeout as sleep } from 'node:timers/promises';
import { coordinationUnavailable, outcomeUnknown } from '../errors.js';

/**
 * Repeats `attempt` until it has an answer, for at most `patience` ms.
 *
 * `attempt` makes a transaction that compares what it changes, so that of all attempts at most one is made, also of those whose
 * outcome is unknown and that are made late. It is told whether the outcome of an earlier attempt is unknown; then it looks whether
 * that one was made. An answer settles the earlier ones too. At the end: TW_DHT_OUTCOME_UNKNOWN if one of them may still be
 * made, otherwise TW_DHT_COORDINATION_UNAVAILABLE.
 */
export async function settle<T>(
  patience: number,
  attempt: (left: number, uncertain: boolean) => Promise<T>,
): Promise<T> {
  const deadline = performance.now() + patience;
  let uncertain: unknown;
  for (let tries = 0; ; tries++) {
    try {
      return await attempt(Math.max(0, deadline - performance.now()), uncertain !== undefined);
    } catch (error) {
      if (outcomeUnknown.is(error)) uncertain = error;
      else if (!coordinationUnavailable.is(error)) throw error;
      if (performance.now() >= deadline) throw uncertain ?? error;
    }
    await backOff(tries);
  }
}

/** Waits a random time that grows with the number of tries: up to 20 ms at first, at most 320 ms. */
export async function backOff(tries: number): Promise<void> {
  await sleep(Math.random() * 20 * 2 ** Math.min(tries, 4));
}
