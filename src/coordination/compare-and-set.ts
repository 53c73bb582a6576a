import { retryUntilAnswered } from './coordination-retry.js';
import { type CoordinationStore, firstKeyValue, type StoredValue } from './coordination-store.js';

export interface CompareAndSet {
  key: string;
  /** Undefined deletes the key. */
  value: string | undefined;
  /** The required `modRevision` of the key; 0 requires that the key is absent. */
  revision: number;
  lease?: string;
}

const TIMEOUT_MS = 10_000;

/**
 * Puts or deletes a key if it still has the given revision; `current` is its value afterwards. An attempt with an unknown outcome is
 * repeated. It counts as made if the key has the wanted value and lease, so values of different writers should differ or be
 * interchangeable. `set` can be false for a change that was made if another writer has replaced the value since.
 */
export function compareAndSet(
  store: CoordinationStore,
  { key, value, revision, lease = '' }: CompareAndSet,
  timeoutMs = TIMEOUT_MS,
): Promise<{ set: boolean; current: StoredValue | undefined }> {
  return retryUntilAnswered(timeoutMs, async (left, uncertain) => {
    const result = await store.transact(
      {
        compare: [{ key, modRevision: revision }],
        success: [value === undefined ? { op: 'delete', key } : { op: 'put', key, value, lease }],
        failure: [{ op: 'get', key }],
      },
      { timeoutMs: left },
    );
    if (result.succeeded)
      return {
        set: true,
        current: value === undefined ? undefined : { key, value, lease, modRevision: result.revision },
      };
    const current = firstKeyValue(result.gets[0]!);
    const wasMade = uncertain && current?.value === value && (current?.lease ?? '') === lease;
    return { set: wasMade, current };
  });
}
