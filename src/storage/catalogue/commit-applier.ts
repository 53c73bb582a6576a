/** The one way in which tiles enter and leave the catalogue, the index and the disk. */
import { SerialQueue } from '../../async/index.js';
import type { PersistentIndex } from '../column-index/persist/persistent-index.js';
import { UndoRecords } from '../column-index/undo-records.js';
import type { VersionGc } from '../files/version-gc.js';
import type { Catalogue, CatalogueChange } from './catalogue.js';
import { type Commit, type RecordEdit, supersededFolders, textureCollectionOf } from './commit.js';
import type { TileRecord } from './records.js';

/**
 * Invariants: the index holds exactly the sound records of the table `tiles`, and changes after the batch that changes
 * them is written, so a search never sees what a power cut could take back for good; it changes in one turn of the event loop, so
 * a search never sees half of a commit. `former` has the records that went with the commits that the index can undo. Work that reads
 * before it writes runs one after another (`serialize`).
 */
export class CommitApplier {
  readonly undoRecords = new UndoRecords();
  /** How often textures of a collection, or their clusters, have changed since the folder was opened. */
  readonly textureChanges = new Map<string, number>();
  private readonly queue = new SerialQueue();

  constructor(
    readonly catalogue: Catalogue,
    private readonly index: PersistentIndex,
    private readonly sweeper: VersionGc,
    /** Is told of the folders that no record names any more. */
    private readonly superseded: (folders: string[]) => void = () => {},
  ) {}

  /** Runs `work` when all that was handed in before has ended. */
  serialize<T>(work: () => Promise<T>): Promise<T> {
    return this.queue.run(work);
  }

  /** One batch, in which `also` changes as well. Files that nothing names any more are left to the sweeper. */
  apply(commit: Commit, also: CatalogueChange[] = []): Promise<void> {
    return this.change(commit, also, true, (removed, added) => this.index.applied(removed, added));
  }

  /**
   * The same for commit `seq` of a cluster, which others have made durable: not synced. `applied` is called in the turn in which the index
   * changes.
   */
  async replicate(seq: number, commit: Commit, also: CatalogueChange[], applied: () => void): Promise<void> {
    if (this.index.index.isNext(seq)) this.undoRecords.add(seq, await this.tilesReplacedBy(commit));
    await this.change(commit, also, false, (removed, added) => {
      this.index.applied(removed, added, seq);
      applied();
    });
    this.undoRecords.forgetBefore(this.index.index.oldest);
  }

  /** The tiles that a commit removes, or whose place others take. */
  private async tilesReplacedBy({ removed = [], added = [] }: Commit): Promise<TileRecord[]> {
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
    if (folders.length === 0) return;
    this.superseded(folders);
    this.sweeper.schedule();
  }

  private countTextures(edits: RecordEdit[]): void {
    const changed = new Set(edits.map((edit) => textureCollectionOf(edit)));
    for (const collection of changed)
      if (collection !== undefined)
        this.textureChanges.set(collection, 1 + (this.textureChanges.get(collection) ?? 0));
  }

  private changeOf({ table, key, record }: RecordEdit): CatalogueChange {
    const { catalogue } = this;
    if (record === null) return catalogue[table].delete(key);
    switch (table) {
      case 'collections':
        return catalogue.collections.set(key, record);
      case 'scenes':
        return catalogue.scenes.set(key, record);
      case 'models':
        return catalogue.models.set(key, record);
      case 'textures':
        return catalogue.textures.set(key, record);
      case 'clusterings':
        return catalogue.clusterings.set(key, record);
    }
  }
}
