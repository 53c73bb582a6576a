import {
  type CoordinationStore,
  compareAndSet,
  firstKeyValue,
  type StoredValue,
  type Watch,
  watchLoop,
} from '../../coordination/index.js';

/** The placement document as it is stored: its text, and the revision for the comparison of a change. */
export interface StoredPlacement {
  text: string;
  revision: number;
}

const KEY = 'placement';

/** Undefined before the first node. A serializable read may be slightly stale, but works without a majority of the etcd servers. */
export async function readPlacement(
  store: CoordinationStore,
  options: { serializable?: boolean; timeoutMs?: number } = {},
): Promise<StoredPlacement | undefined> {
  const { gets } = await store.read([{ key: KEY }], options);
  return placementOf(firstKeyValue(gets[0]!));
}

/**
 * Replaces the placement if it still has `revision`; 0 requires that no placement exists. `current` is the stored placement afterwards: if
 * `swapped` is false, recompute the change from it.
 */
export async function compareAndSwapPlacement(
  store: CoordinationStore,
  revision: number,
  text: string,
): Promise<{ swapped: boolean; current: StoredPlacement | undefined }> {
  const { set, current } = await compareAndSet(store, { key: KEY, value: text, revision });
  return { swapped: set, current: placementOf(current) };
}

/** Calls `onChange` with the placement at the start and whenever it has a new revision. */
export function watchPlacement(
  store: CoordinationStore,
  onChange: (placement: StoredPlacement) => void,
  onError: (error: unknown) => void,
): Watch {
  let reported = 0;
  const read = async () => {
    const placement = await readPlacement(store);
    if (placement === undefined || placement.revision <= reported) return;
    reported = placement.revision;
    onChange(placement);
  };
  return watchLoop(store, { key: KEY }, read, onError);
}

const placementOf = (kv: StoredValue | undefined) => kv && { text: kv.value, revision: kv.modRevision };
