import {
  type CoordinationStore,
  compareAndSet,
  documentOf,
  only,
  type PutValue,
} from '../../coordination/index.js';

/** What the first ingest of a collection fixes for all nodes. */
export interface FixedCollection {
  grid: string;
  precision: number;
  /** Pixel sizes of its band groups, and whatever else must be one in the cluster. */
  [field: string]: unknown;
}

export interface CollectionKey {
  id: string;
  /** Of the key: commits that rely on the collection compare it. */
  revision: number;
  fixed: FixedCollection;
}

const PREFIX = 'collections/';
/** The key of a collection, for transactions that compare it. */
export const collectionKeyOf = (id: string) => PREFIX + id;

/** Fixes a new collection; where it is there already, returns what was fixed by another. */
export async function fixCollection(
  store: CoordinationStore,
  id: string,
  fixed: FixedCollection,
): Promise<CollectionKey> {
  const value = JSON.stringify(fixed);
  const { current } = await compareAndSet(store, { key: collectionKeyOf(id), value, revision: 0 });
  return decode(current!);
}

/** Changes what is fixed (a new band group, say) if nobody has meanwhile; `current` is what is there then. */
export async function changeCollection(
  store: CoordinationStore,
  { id, revision }: Pick<CollectionKey, 'id' | 'revision'>,
  fixed: FixedCollection,
): Promise<{ changed: boolean; current: CollectionKey | undefined }> {
  const value = JSON.stringify(fixed);
  const { set, current } = await compareAndSet(store, { key: collectionKeyOf(id), value, revision });
  return { changed: set, current: current && decode(current) };
}

/** Deletes the key of a collection if nobody has changed it meanwhile: commits that rely on it are refused from then on. */
export async function unfixCollection(
  store: CoordinationStore,
  { id, revision }: Pick<CollectionKey, 'id' | 'revision'>,
): Promise<boolean> {
  return (await compareAndSet(store, { key: collectionKeyOf(id), value: undefined, revision })).set;
}

export async function readCollection(
  store: CoordinationStore,
  id: string,
): Promise<CollectionKey | undefined> {
  const { gets } = await store.read([{ key: collectionKeyOf(id) }]);
  const kv = only(gets[0]!);
  return kv && decode(kv);
}

function decode(kv: PutValue): CollectionKey {
  const fixed = documentOf<FixedCollection>(kv, ['grid', 'precision']);
  return { id: kv.key.slice(PREFIX.length), revision: kv.modRevision, fixed };
}
