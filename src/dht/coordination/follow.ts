import type { CoordinationStore, KeyRange, Watch } from './store.js';

const RETRY_DELAY = 500;

/**
 * Calls `read` at first and whenever something in the range has changed: never twice at a time, and once more where something has
 * changed meanwhile. Where it fails, `failed` is told, and it is called again after half a second.
 */
export function follow(
  store: CoordinationStore,
  range: KeyRange,
  read: () => Promise<void>,
  failed: (error: unknown) => void,
): Watch {
  let woken = false;
  let running = false;
  let closed = false;
  let retry: NodeJS.Timeout | undefined;

  const run = async () => {
    woken = true;
    if (running) return;
    running = true;
    while (woken && !closed) {
      woken = false;
      try {
        await read();
      } catch (error) {
        if (closed) break;
        clearTimeout(retry);
        retry = setTimeout(run, RETRY_DELAY).unref();
        failed(error);
      }
    }
    running = false;
  };

  const watch = store.watch(range, run);
  return {
    close() {
      closed = true;
      clearTimeout(retry);
      watch.close();
    },
  };
}
