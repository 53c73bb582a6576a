/** The one way in which tiles enter and leave the catalogue, the index and the disk. */
import type { Catalogue, Change } from './catalogue.js';
import { type Commit, type RecordEdit, supersededFolders } from './commit.js';
import type { DurableIndex } from './durable-index.js';
import type { Sweeper } from './sweeper.js';

/**
 * Invariants: the index holds exactly the sound records of the table `tiles`, and changes after the batch that changes
 * them is written, so a search never sees what a power cut could take back for good; it changes in one turn of the event loop, so
 * a search never sees half of a commit. Work that reads before it writes runs one after another (`inTurn`).
 */
export class Commits {
  private turn: Promise<unknown> = Promise.resolve();

  constructor(
    readonly catalogue: Catalogue,
    private readonly index: DurableIndex,
    private readonly sweeper: Sweeper,
    /** Is told of the folders that no record names any more. */
    private readonly superseded: (folders: string[]) => void = () => {},
  ) {}

  /** Runs `work` when all that was handed in before has ended. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.turn.then(work);
    // The caller has the error in `result`; the next in turn only waits for the end.
    this.turn = result.catch(() => undefined);
    return result;
  }

  /**
   * One batch, in which `also` changes as well; see `Catalogue.write` for `sync`. Files that nothing names any more are left to
   * the sweeper.
   */
  async apply(commit: Commit, also: Change[] = [], sync = true): Promise<void> {
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
      ...(changedIds.size > 0 ? [this.index.logged(changedIds)] : []),
    ];
    await this.catalogue.write(changes, sync);
    if (changedIds.size > 0) this.index.applied(removedIds, added);
    if (folders.length === 0) return;
    this.superseded(folders);
    this.sweeper.schedule();
  }

  private changeOf({ table, key, record }: RecordEdit): Change {
    const { catalogue } = this;
    if (record === null) return catalogue[table].delete(key);
    switch (table) {
      case 'collections':
        return catalogue.collections.set(key, record);
      case 'scenes':
        return catalogue.scenes.set(key, record);
      case 'models':
        return catalogue.models.set(key, record);
    }
  }
}
