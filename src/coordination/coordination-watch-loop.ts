import type { CoordinationStore, KeyRange, Watch, WatchSignal } from './coordination-store.js';

const RETRY_DELAY_MS = 500;

/**
 * Calls `read` at the start and whenever something in the range has changed: one call at a time, and once more if the range changes
 * during a call. The argument is the newest change, or `start` if a change may have been missed. If `read` fails, `onError` gets the
 * error, and `read` is called again after RETRY_DELAY_MS. `onError` also gets the error of a watch that the store refuses.
 */
export function watchLoop(
  store: CoordinationStore,
  range: KeyRange,
  read: (signal: WatchSignal) => Promise<void>,
  onError: (error: unknown) => void,
): Watch {
  let next: WatchSignal | undefined;
  let running = false;
  let closed = false;
  let retry: NodeJS.Timeout | undefined;

  const run = async (signal: WatchSignal) => {
    next = next?.reason === 'start' ? next : signal;
    if (running) return;
    running = true;
    while (next && !closed) {
      const current: WatchSignal = next;
      next = undefined;
      try {
        await read(current);
      } catch (error) {
        if (closed) break;
        clearTimeout(retry);
        retry = setTimeout(run, RETRY_DELAY_MS, { ...current, reason: 'start' }).unref();
        onError(error);
      }
    }
    running = false;
  };

  const watch = store.watch(range, run, onError);
  return {
    close() {
      closed = true;
      clearTimeout(retry);
      watch.close();
    },
  };
}
