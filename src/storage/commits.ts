/** The one way in which tiles enter and leave the catalogue, the index and the disk. */
import type { Catalogue, Change } from './catalogue.js';
import type { DurableIndex } from './durable-index.js';
import { type TileVersion, tileFolder } from './layout.js';
import type { TileRecord } from './records.js';
import type { Sweeper } from './sweeper.js';

/**
 * Invariants: the index holds exactly the sound records of the table `tiles`, and changes after the batch that changes
 * them is on disk, so a search never sees what a power cut could take back; it changes in one turn of the event loop, so
 * a search never sees half of a commit. Work that reads before it writes runs one after another (`inTurn`).
 */
export class Commits {
  private turn: Promise<unknown> = Promise.resolve();

  constructor(
    readonly catalogue: Catalogue,
    private readonly index: DurableIndex,
    private readonly sweeper: Sweeper,
  ) {}

  /** Runs `work` when all that was handed in before has ended. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.turn.then(work);
    // The caller has the error in `result`; the next in turn only waits for the end.
    this.turn = result.catch(() => undefined);
    return result;
  }

  /**
   * One synced batch: `removed` go, `added` come (in the place of a removed one of the same id), and `also` changes with
   * them. The files of `removed` are left to the sweeper.
   */
  async apply(removed: TileVersion[], added: TileRecord[], also: Change[]): Promise<void> {
    const { tiles } = this.catalogue;
    const removedIds = removed.map((tile) => tile.id);
    const changedIds = new Set([...removedIds, ...added.map((tile) => tile.id)]);
    await this.catalogue.write([
      ...removed.map((tile) => tiles.delete(tile.id)),
      ...this.superseding(removed.map(tileFolder)),
      ...added.map((tile) => tiles.set(tile.id, tile)),
      ...also,
      ...(changedIds.size > 0 ? [this.index.logged(changedIds)] : []),
    ]);
    if (changedIds.size > 0) this.index.applied(removedIds, added);
    if (removed.length > 0) this.sweeper.schedule();
  }

  /** Like `apply`, for the folder of a model's former version. */
  async applyModel(changes: Change[], formerFolder: string | undefined): Promise<void> {
    const former = formerFolder === undefined ? [] : [formerFolder];
    await this.catalogue.write([...changes, ...this.superseding(former)]);
    if (former.length > 0) this.sweeper.schedule();
  }

  private superseding(folders: string[]): Change[] {
    const since = Date.now();
    return folders.map((folder) => this.catalogue.superseded.set(folder, { since }));
  }
}
