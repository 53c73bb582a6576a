import {
  type CoordinationStore,
  readKey,
  type StoredValue,
  type Watch,
  watchLoop,
} from '../../coordination/index.js';

export const PLACEMENT_KEY = 'placement';

/**
 * The stored placement document; undefined before the first node. A serializable read may be slightly stale, but works without a majority
 * of the etcd servers.
 */
export function readPlacement(
  store: CoordinationStore,
  options: { serializable?: boolean; timeoutMs?: number } = {},
): Promise<StoredValue | undefined> {
  return readKey(store, PLACEMENT_KEY, options);
}

/** Calls `onChange` with the placement at the start and whenever it has a new revision. */
export function watchPlacement(
  store: CoordinationStore,
  onChange: (placement: StoredValue) => void,
  onError: (error: unknown) => void,
): Watch {
  let reported = 0;
  const read = async () => {
    const placement = await readPlacement(store);
    if (placement === undefined || placement.modRevision <= reported) return;
    reported = placement.modRevision;
    onChange(placement);
  };
  return watchLoop(store, { key: PLACEMENT_KEY }, read, onError);
}
