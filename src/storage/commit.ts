/** Commits, the changes that become visible together, and their application to the catalogue and the column index. */

import { SerialQueue } from '../async/index.js';
import type { Catalogue, CatalogueChange, Table } from './catalogue.js';
import type { PersistentIndex } from './column-index/persistent-index.js';
import { commitTooOld } from './errors.js';
import { type ModelVersion, modelFolder, type TileVersion, tileFolder } from './file-names.js';
import type {
  ClusteringRecord,
  CollectionRecord,
  ModelRecord,
  SceneRecord,
  TextureRecord,
  TileRecord,
} from './records.js';

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
function textureCollectionOf({ table, key }: RecordEdit): string | undefined {
  if (table === 'clusterings') return key;
  return table === 'textures' ? key.slice(0, key.indexOf('/')) : undefined;
}

/**
 * Tile records that the latest commits of a replica have removed or replaced. Invariant: `commits` has, in ascending order, all commits
 * after `oldest` that removed or replaced a tile.
 */
class UndoRecords {
  private commits: { seq: number; tiles: Map<string, TileRecord> }[] = [];
  private oldest = 0;

  /** Adds the former records of the tiles that commit `seq` removes or replaces; `seq` is later than all before. */
  add(seq: number, tiles: TileRecord[]): void {
    if (tiles.length > 0) this.commits.push({ seq, tiles: new Map(tiles.map((tile) => [tile.id, tile])) });
  }

  /** The record that a tile had as of commit `seq`, if a later commit has changed it. Throws TW_STORAGE_TOO_OLD. */
  get(id: string, seq: number): TileRecord | undefined {
    if (seq < this.oldest) throw commitTooOld(seq, this.oldest);
    const { commits } = this;
    let former: TileRecord | undefined;
    for (let i = commits.length - 1; i >= 0 && commits[i].seq > seq; i--)
      former = commits[i].tiles.get(id) ?? former;
    return former;
  }

  /** Drops the records that only reads as of a commit before `seq` need. */
  forgetBefore(seq: number): void {
    this.oldest = seq;
    this.commits = this.commits.filter((commit) => commit.seq > seq);
  }
}

/**
 * Applies commits to the catalogue and the column index. Nothing else changes tiles. Invariants: the index has exactly the intact records
 * of the table `tiles`. It changes after the batch is written, so a search never sees anything that a power cut could undo for good, and in
 * one turn of the event loop, so a search never sees half of a commit. `undoRecords` has the records that were removed by the commits that
 * the index can undo. Work that reads before it writes runs serially (`serialize`).
 */
export class CommitApplier {
  readonly undoRecords = new UndoRecords();
  /** Number of commits since the folder was opened that changed textures or clusterings, by collection. */
  readonly textureChanges = new Map<string, number>();
  private readonly queue = new SerialQueue();

  constructor(
    readonly catalogue: Catalogue,
    private readonly index: PersistentIndex,
    /** Called after a commit with the version folders that no record names any more. */
    private readonly onSuperseded: (folders: string[]) => void,
  ) {}

  /** Runs `work` after all work that was passed in before. */
  serialize<T>(work: () => Promise<T>): Promise<T> {
    return this.queue.run(work);
  }

  /** Writes a commit and `also` in one synced batch. */
  apply(commit: Commit, also: CatalogueChange[] = []): Promise<void> {
    return this.change(commit, also, true, (removed, added) => this.index.applied(removed, added));
  }

  /**
   * Applies commit `seq` of a cluster, which is durable elsewhere and therefore not synced here. `applied` is called in the turn in which
   * the index changes.
   */
  async replicate(seq: number, commit: Commit, also: CatalogueChange[], applied: () => void): Promise<void> {
    if (this.index.index.isNext(seq)) this.undoRecords.add(seq, await this.replacedTiles(commit));
    await this.change(commit, also, false, (removed, added) => {
      this.index.applied(removed, added, seq);
      applied();
    });
    this.undoRecords.forgetBefore(this.index.index.oldest);
  }

  /** The present tiles that a commit removes or replaces. */
  private async replacedTiles({ removed = [], added = [] }: Commit): Promise<TileRecord[]> {
    const { index } = this.index;
    const ids = new Set([...removed, ...added].map(({ id }) => id).filter((id) => index.has(id)));
    const scanned = await this.catalogue.tiles.scanMany([...ids]);
    return scanned.flatMap((tile) => tile?.record ?? []);
  }

  private async change(
    commit: Commit,
    also: CatalogueChange[],
    sync: boolean,
    applied: (removed: string[], added: TileRecord[]) => void,
  ): Promise<void> {
    const { removed = [], added = [], edits = [] } = commit;
    const { tiles, superseded } = this.catalogue;
    const removedIds = removed.map((tile) => tile.id);
    const changedIds = new Set([...removedIds, ...added.map((tile) => tile.id)]);
    const folders = supersededFolders(commit);
    const since = Date.now();
    const changes = [
      ...removed.map((tile) => tiles.delete(tile.id)),
      ...folders.map((folder) => superseded.set(folder, { since })),
      ...added.map((tile) => tiles.set(tile.id, tile)),
      ...edits.map((edit) => this.changeOf(edit)),
      ...also,
      ...(changedIds.size > 0 ? [this.index.logRecord(changedIds)] : []),
    ];
    await this.catalogue.write(changes, sync);
    applied(removedIds, added);
    this.countTextures(edits);
    if (folders.length > 0) this.onSuperseded(folders);
  }

  private countTextures(edits: RecordEdit[]): void {
    const changed = new Set(edits.map((edit) => textureCollectionOf(edit)));
    for (const collection of changed)
      if (collection !== undefined)
        this.textureChanges.set(collection, 1 + (this.textureChanges.get(collection) ?? 0));
  }

  private changeOf({ table, key, record }: RecordEdit): CatalogueChange {
    const edited: Table<unknown> = this.catalogue[table];
    return record === null ? edited.delete(key) : edited.set(key, record);
  }
}
