/** What one commit changes. */
import { type ModelVersion, modelFolder, type TileVersion, tileFolder } from '../files/paths.js';
import type {
  ClusteringRecord,
  CollectionRecord,
  ModelRecord,
  SceneRecord,
  TextureRecord,
  TileRecord,
} from './records.js';

/** A record that comes or changes, or, where it is null, goes. */
export type RecordEdit =
  | { table: 'collections'; key: string; record: CollectionRecord | null }
  | { table: 'scenes'; key: string; record: SceneRecord | null }
  | { table: 'models'; key: string; record: ModelRecord | null }
  | { table: 'textures'; key: string; record: TextureRecord | null }
  | { table: 'clusterings'; key: string; record: ClusteringRecord | null };

/** The tables that such records are in. Every node of a cluster has all of them. */
export const REPLICATED_TABLES = [
  'collections',
  'scenes',
  'models',
  'textures',
  'clusterings',
] as const satisfies RecordEdit['table'][];

/**
 * All of it becomes visible together, or nothing. All records that it puts, except models, belong to one collection, because the
 * commit of a cluster compares one collection's key. Plain JSON, so that it can be sent to other nodes.
 */
export interface Commit {
  /** Tiles that go; one of the same id may come. */
  removed?: TileVersion[];
  added?: TileRecord[];
  edits?: RecordEdit[];
  /** The versions that models of `edits` have no more. */
  formerModels?: ModelVersion[];
}

/**
 * Folders of the versions that no record names any more when the commit is done. A commit that is repeated after an unknown outcome
 * replaces tiles by themselves: their folders stay.
 */
export function supersededFolders({ removed = [], added = [], formerModels = [] }: Commit): string[] {
  const kept = new Set(added.map(tileFolder));
  const folders = removed.map(tileFolder).filter((folder) => !kept.has(folder));
  return [...folders, ...formerModels.map(modelFolder)];
}

/** Tiles or other records by their collections. */
export function byCollection<T extends { collection: string }>(records: T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const record of records) {
    const group = groups.get(record.collection);
    if (group) group.push(record);
    else groups.set(record.collection, [record]);
  }
  return groups;
}

/** The collection of a change of a texture or of clusters. */
export function textureCollectionOf({ table, key }: RecordEdit): string | undefined {
  if (table === 'clusterings') return key;
  return table === 'textures' ? key.slice(0, key.indexOf('/')) : undefined;
}
