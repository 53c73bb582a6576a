/**
 * Conditions that keep textures and tiles consistent: a texture is stored only if its tile exists, and deleted with it. So a commit
 * that stores textures and one that removes tiles must not be built from the same state. Each of them writes one key and compares
 * the other, and commits of one kind do not conflict with each other.
 */
import { type CoordinationStore, firstKeyValue } from '../../coordination/index.js';
import type { Commit } from '../../storage/index.js';
import type { CommitConditions, KeyRevision } from './commit-log.js';
import { decodeSchema, type StoredCollectionSchema, schemaKey } from './commit-log-collection-schema.js';

/** Keys with the number of the last commit that stored textures, or removed or replaced tiles. They sort after the entries of the log. */
const TEXTURES = 'log/textures';
const REMOVALS = 'log/removals';

/** The keys that a commit may rely on, as they were before the commit was built. */
export interface KnownConditions {
  schema: StoredCollectionSchema | undefined;
  textures: KeyRevision;
  removals: KeyRevision;
}

/** Reads the schema of a collection and both keys. */
export async function readConditions(
  store: CoordinationStore,
  collection: string | undefined,
): Promise<KnownConditions> {
  const keys = [TEXTURES, REMOVALS, ...(collection === undefined ? [] : [schemaKey(collection)])];
  const { gets } = await store.read(keys.map((key) => ({ key })));
  const [textures, removals, schema] = gets.map(firstKeyValue);
  return {
    schema: schema && decodeSchema(schema),
    textures: { key: TEXTURES, modRevision: textures?.modRevision ?? 0 },
    removals: { key: REMOVALS, modRevision: removals?.modRevision ?? 0 },
  };
}

/** The conditions of a commit that was built after `known` was read. */
export function textureConditions(
  { removed = [], edits = [] }: Commit,
  { textures, removals }: KnownConditions,
): CommitConditions & { touch: string[] } {
  const removesTiles = removed.length > 0;
  const storesTextures = edits.some(({ table, record }) => table === 'textures' && record);
  return {
    compare: [...(removesTiles ? [textures] : []), ...(storesTextures ? [removals] : [])],
    touch: [...(removesTiles ? [REMOVALS] : []), ...(storesTextures ? [TEXTURES] : [])],
  };
}
