import { type CoordinationStore, firstKeyValue, type StoredValue } from './kv-store.js';
import { retryUntilAnswered } from './retry-until-answered.js';

export interface CompareAndSet {
  key: string;
  /** Undefined: the key is deleted. */
  value: string | undefined;
  /** The `modRevision` that the key must have; 0: it must be absent. */
  revision: number;
  lease?: string;
}

const TIMEOUT_MS = 10_000;

/**
 * Puts or deletes a key if nobody has changed it meanwhile; `current` is what is there then. An attempt whose outcome is unknown is
 * repeated. It counts as made where the value and lease are there that were to be set, so values of different writers should
 * differ, or mean the same. `set` may be false though it was made, where another has replaced it since.
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
