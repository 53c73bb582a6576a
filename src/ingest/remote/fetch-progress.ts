import type { IngestHooks } from '../ingest-options.js';

/** Part of the progress of a remote scene that its fetch counts for; the network usually is slower than the cutting. */
const FETCH_SHARE = 0.7;

/** Divides the progress of a remote scene between its fetch and its cutting. */
export function fetchProgress(hooks: IngestHooks) {
  return {
    onFetched: (share: number) => hooks.onProgress?.(FETCH_SHARE * share),
    cutHooks: {
      ...hooks,
      onProgress: (share: number) => hooks.onProgress?.(FETCH_SHARE + (1 - FETCH_SHARE) * share),
    },
  };
}
