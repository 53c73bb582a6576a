import {
  type CoordinationStore,
  compareAndSet,
  firstKeyValue,
  parseJsonValue,
  type StoredValue,
} from '../../coordination/index.js';

/** What the first ingest of a collection fixes for all nodes. */
export interface CollectionSchema {
  grid: string;
  precision: number;
  /** Pixel sizes of its band groups, and whatever else must be one in the cluster. */
  [field: string]: unknown;
}

export interface StoredCollectionSchema {
  id: string;
  /** Of the key: commits that rely on the collection compare it. */
  revision: number;
  schema: CollectionSchema;
}

const PREFIX = 'collections/';
/** The key of a collection, for transactions that compare it. */
export const schemaKey = (id: string) => PREFIX + id;

/** Fixes a new collection; where it is there already, returns what was fixed by another. */
export async function createSchemaIfAbsent(
  store: CoordinationStore,
  id: string,
  fixed: CollectionSchema,
): Promise<StoredCollectionSchema> {
  const value = JSON.stringify(fixed);
  const { current } = await compareAndSet(store, { key: schemaKey(id), value, revision: 0 });
  return decode(current!);
}

/** Changes what is fixed (a new band group, say) if nobody has meanwhile; `current` is what is there then. */
export async function updateSchema(
  store: CoordinationStore,
  { id, revision }: Pick<StoredCollectionSchema, 'id' | 'revision'>,
  fixed: CollectionSchema,
): Promise<{ changed: boolean; current: StoredCollectionSchema | undefined }> {
  const value = JSON.stringify(fixed);
  const { set, current } = await compareAndSet(store, { key: schemaKey(id), value, revision });
  return { changed: set, current: current && decode(current) };
}

/** Deletes the key of a collection if nobody has changed it meanwhile: commits that rely on it are refused from then on. */
export async function deleteSchema(
  store: CoordinationStore,
  { id, revision }: Pick<StoredCollectionSchema, 'id' | 'revision'>,
): Promise<boolean> {
  return (await compareAndSet(store, { key: schemaKey(id), value: undefined, revision })).set;
}

export async function readSchema(
  store: CoordinationStore,
  id: string,
): Promise<StoredCollectionSchema | undefined> {
  const { gets } = await store.read([{ key: schemaKey(id) }]);
  const kv = firstKeyValue(gets[0]!);
  return kv && decode(kv);
}

function decode(kv: StoredValue): StoredCollectionSchema {
  const schema = parseJsonValue<CollectionSchema>(kv, ['grid', 'precision']);
  return { id: kv.key.slice(PREFIX.length), revision: kv.modRevision, schema };
}
