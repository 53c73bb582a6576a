/** Commits: the changes that become visible together. */
import { type ModelVersion, modelFolder, type TileVersion, tileFolder } from '../files/index.js';
import type {
  ClusteringRecord,
  CollectionRecord,
  ModelRecord,
  SceneRecord,
  TextureRecord,
  TileRecord,
} from '../records/index.js';

/** The new record of a key; null deletes the record. */
export type RecordEdit =
  | { table: 'collections'; key: string; record: CollectionRecord | null }
  | { table: 'scenes'; key: string; record: SceneRecord | null }
  | { table: 'models'; key: string; record: ModelRecord | null }
  | { table: 'textures'; key: string; record: TextureRecord | null }
  | { table: 'clusterings'; key: string; record: ClusteringRecord | null };

/** The tables that commits edit. Every node of a cluster has all of them. */
export const REPLICATED_TABLES = [
  'collections',
  'scenes',
  'models',
  'textures',
  'clusterings',
] as const satisfies RecordEdit['table'][];

/**
 * Changes that become visible together. All records that it puts, except models, belong to one collection, because a
 * commit in a cluster compares one collection's key. Plain JSON, so that it can be sent to other nodes.
 */
export interface Commit {
  /** Tiles to remove. `added` may have a new version of one. */
  removed?: TileVersion[];
  added?: TileRecord[];
  edits?: RecordEdit[];
  /** Versions that the models in `edits` have lost. */
  formerModels?: ModelVersion[];
}

/**
 * Folders of the versions that no record names after the commit. A commit that is repeated after an unknown outcome
 * replaces tiles by themselves: their folders stay.
 */
export function supersededFolders({ removed = [], added = [], formerModels = [] }: Commit): string[] {
  const kept = new Set(added.map(tileFolder));
  const folders = removed.map(tileFolder).filter((folder) => !kept.has(folder));
  return [...folders, ...formerModels.map(modelFolder)];
}

/** Groups tiles or other records by their collection. */
export function byCollection<T extends { collection: string }>(records: T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const record of records) {
    const group = groups.get(record.collection);
    if (group) group.push(record);
    else groups.set(record.collection, [record]);
  }
  return groups;
}

/** The collection of an edit of a texture or a clustering. */
export function textureCollectionOf({ table, key }: RecordEdit): string | undefined {
  if (table === 'clusterings') return key;
  return table === 'textures' ? key.slice(0, key.indexOf('/')) : undefined;
}
