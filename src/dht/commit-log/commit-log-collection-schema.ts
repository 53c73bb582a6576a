import {
  type CoordinationStore,
  compareAndSet,
  parseJsonValue,
  readKey,
  type StoredValue,
} from '../../coordination/index.js';

/** The properties of a collection that its first ingest fixes for all nodes. */
export interface CollectionSchema {
  grid: string;
  precision: number;
  /** Pixel sizes of its band groups, and whatever else must be the same on all nodes. */
  [field: string]: unknown;
}

export interface StoredCollectionSchema {
  id: string;
  /** Revision of the key, which commits that rely on the collection compare. */
  revision: number;
  schema: CollectionSchema;
}

const PREFIX = 'collections/';
/** The key of a collection, for transactions that compare it. */
export const schemaKey = (id: string) => PREFIX + id;

/**
 * Stores a schema (for a new band group, for example) unless it has changed; `revision` 0 requires that the collection has none.
 * `current` is the schema afterwards.
 */
export async function updateSchema(
  store: CoordinationStore,
  { id, revision }: Pick<StoredCollectionSchema, 'id' | 'revision'>,
  schema: CollectionSchema,
): Promise<{ changed: boolean; current: StoredCollectionSchema | undefined }> {
  const value = JSON.stringify(schema);
  const { set, current } = await compareAndSet(store, { key: schemaKey(id), value, revision });
  return { changed: set, current: current && decodeSchema(current) };
}

/** Deletes the schema unless it has changed. From then on, commits that rely on the collection are refused. */
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
  const kv = await readKey(store, schemaKey(id));
  return kv && decodeSchema(kv);
}

/** Parses the value of a key `schemaKey`. TW_DHT_DOCUMENT_DAMAGED. */
export function decodeSchema(kv: StoredValue): StoredCollectionSchema {
  const schema = parseJsonValue<CollectionSchema>(kv, ['grid', 'precision']);
  return { id: kv.key.slice(PREFIX.length), revision: kv.modRevision, schema };
}
