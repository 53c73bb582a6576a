import {
  type CoordinationStore,
  compareAndSet,
  firstKeyValue,
  type StoredValue,
  type Watch,
  watchLoop,
} from '../../coordination/index.js';

/** The placement document as it is stored: its text, and the revision that a change of it is compared with. */
export interface StoredPlacement {
  text: string;
  revision: number;
}

const KEY = 'placement';

/** Undefined before the first node. A serializable read may be a little old, and is answered without most servers, too. */
export async function readPlacement(
  store: CoordinationStore,
  options: { serializable?: boolean; patience?: number } = {},
): Promise<StoredPlacement | undefined> {
  const { gets } = await store.read([{ key: KEY }], options);
  return placementOf(firstKeyValue(gets[0]!));
}

/**
 * Replaces the placement if it is the one of `revision` still; with revision 0, if there is none. `current` is what is stored then:
 * where `swapped` is false, the change is computed again from it.
 */
export async function compareAndSwapPlacement(
  store: CoordinationStore,
  revision: number,
  text: string,
): Promise<{ swapped: boolean; current: StoredPlacement | undefined }> {
  const { set, current } = await compareAndSet(store, { key: KEY, value: text, revision });
  return { swapped: set, current: placementOf(current) };
}

/** Tells the placement at first and whenever it has another revision. */
export function watchPlacement(
  store: CoordinationStore,
  changed: (placement: StoredPlacement) => void,
  failed: (error: unknown) => void,
): Watch {
  let told = 0;
  const read = async () => {
    const placement = await readPlacement(store);
    if (placement === undefined || placement.revision <= told) return;
    told = placement.revision;
    changed(placement);
  };
  return watchLoop(store, { key: KEY }, read, failed);
}

const placementOf = (kv: StoredValue | undefined) => kv && { text: kv.value, revision: kv.modRevision };
