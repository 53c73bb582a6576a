import type { CoordinationStore, KeyRange, Wake, Watch } from './kv-store.js';

const RETRY_DELAY = 500;

/**
 * Calls `read` at first and whenever something in the range has changed: never twice at a time, and once more where something has
 * changed meanwhile. Its argument is the newest change, or the start if a change may have been missed. If it fails, `failed` gets the error,
 * and it is called again after half a second. `failed` also gets the error of a watch that the store refuses.
 */
export function follow(
  store: CoordinationStore,
  range: KeyRange,
  read: (wake: Wake) => Promise<void>,
  failed: (error: unknown) => void,
): Watch {
  let woken: Wake | undefined;
  let running = false;
  let closed = false;
  let retry: NodeJS.Timeout | undefined;

  const run = async (wake: Wake) => {
    woken = woken?.why === 'start' ? woken : wake;
    if (running) return;
    running = true;
    while (woken && !closed) {
      const told: Wake = woken;
      woken = undefined;
      try {
        await read(told);
      } catch (error) {
        if (closed) break;
        clearTimeout(retry);
        retry = setTimeout(run, RETRY_DELAY, { ...told, why: 'start' }).unref();
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
