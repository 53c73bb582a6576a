import type { CoordinationStore, KeyRange, Watch, WatchSignal } from './kv-store.js';

const RETRY_DELAY_MS = 500;

/**
 * Calls `read` at first and whenever something in the range has changed: never twice at a time, and once more where something has
 * changed meanwhile. Its argument is the newest change, or the start if a change may have been missed. If it fails, `failed` gets the error,
 * and it is called again after half a second. `failed` also gets the error of a watch that the store refuses.
 */
export function watchLoop(
  store: CoordinationStore,
  range: KeyRange,
  read: (wake: WatchSignal) => Promise<void>,
  failed: (error: unknown) => void,
): Watch {
  let woken: WatchSignal | undefined;
  let running = false;
  let closed = false;
  let retry: NodeJS.Timeout | undefined;

  const run = async (wake: WatchSignal) => {
    woken = woken?.reason === 'start' ? woken : wake;
    if (running) return;
    running = true;
    while (woken && !closed) {
      const told: WatchSignal = woken;
      woken = undefined;
      try {
        await read(told);
      } catch (error) {
        if (closed) break;
        clearTimeout(retry);
        retry = setTimeout(run, RETRY_DELAY_MS, { ...told, reason: 'start' }).unref();
        failed(error);
      }
    }
    running = false;
  };

  const watch = store.watch(range, run, failed);
  return {
    close() {
      closed = true;
      clearTimeout(retry);
      watch.close();
    },
  };
}
