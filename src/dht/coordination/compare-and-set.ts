import { settle } from './settle.js';
import { type CoordinationStore, type KeyValue, only } from './store.js';

export interface CompareAndSet {
  key: string;
  /** Undefined: the key is deleted. */
  value: string | undefined;
  /** The `modRevision` that the key must have; 0: it must be absent. */
  revision: number;
  lease?: string;
}

const PATIENCE = 10_000;

/**
 * Puts or deletes a key if nobody has changed it meanwhile; `current` is what is there then. An attempt whose outcome is unknown is
 * repeated. It counts as made where the value and lease are there that were to be set, so values of different writers should
 * differ, or mean the same. `set` may be false though it was made, where another has replaced it since.
 */
export function compareAndSet(
  store: CoordinationStore,
  { key, value, revision, lease = '' }: CompareAndSet,
  patience = PATIENCE,
): Promise<{ set: boolean; current: KeyValue | undefined }> {
  return settle(patience, async (left, uncertain) => {
    const { succeeded, gets } = await store.transact(
      {
        compare: [{ key, modRevision: revision }],
        success: [
          value === undefined ? { op: 'delete', key } : { op: 'put', key, value, lease },
          { op: 'get', key },
        ],
        failure: [{ op: 'get', key }],
      },
      { patience: left },
    );
    const current = only(gets[0]!);
    const wasMade = uncertain && current?.value === value && (current?.lease ?? '') === lease;
    return { set: succeeded || wasMade, current };
  });
}
