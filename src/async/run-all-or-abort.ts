/** Runs parts of one piece of work, of which the first failure ends the others. */
import { setMaxListeners } from 'node:events';

/**
 * Runs all works at once. If one fails, aborts the signal of the others with its error, waits until they have ended, and throws the error.
 * The works also end if `outer` is aborted.
 */
export async function runAllOrAbort(
  works: readonly ((signal: AbortSignal) => Promise<void>)[],
  outer?: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const signal = outer ? AbortSignal.any([outer, stop.signal]) : stop.signal;
  // Each work may have many listeners.
  setMaxListeners(0, signal, stop.signal);
  await Promise.all(
    works.map((work) =>
      work(signal).catch((error) => {
        if (!stop.signal.aborted) stop.abort(error);
      }),
    ),
  );
  outer?.throwIfAborted();
  stop.signal.throwIfAborted();
}
