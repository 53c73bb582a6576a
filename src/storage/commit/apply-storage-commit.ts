/** Applies commits to the catalogue and the column index. Nothing else changes tiles. */
import { SerialQueue } from '../../async/index.js';
import type { Catalogue, CatalogueChange, Table } from '../catalogue/index.js';
import type { PersistentIndex } from '../column-index/index.js';
import type { TileRecord } from '../records/index.js';
import { type Commit, type RecordEdit, supersededFolders, textureCollectionOf } from './storage-commit.js';
import { UndoRecords } from './storage-commit-undo-records.js';

/**
 * Invariants: the index has exactly the intact records of the table `tiles`. It changes after the batch is written, so a search never
 * sees anything that a power cut could undo for good, and in one turn of the event loop, so a search never sees half of a commit.
 * `undoRecords` has the records that were removed by the commits that the index can undo. Work that reads before it writes
 * runs serially (`serialize`).
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
