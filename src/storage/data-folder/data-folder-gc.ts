/** Removes version folders that no record names: those of interrupted writes, and replaced versions. */
import { SerialQueue } from '../../async/index.js';
import type { CatalogueChange, Table } from '../catalogue/index.js';
import { removeVersions } from '../files/index.js';
import type { DataFolder } from './data-folder.js';

const BATCH_RECORDS = 500;

/**
 * Invariant: a version folder is removed only while `pending` (at open, when nothing is being written) or `superseded`
 * names it, and its record is removed after its files, so the next run completes an interrupted one.
 */
export class VersionGc {
  lastError: unknown;
  private timer: NodeJS.Timeout | undefined;
  private readonly queue = new SerialQueue();

  constructor(
    private readonly folder: DataFolder,
    /** Time for which a superseded version is kept. */
    private readonly delayMs: number,
    private readonly onRemoved: (folders: string[]) => void,
  ) {}

  /** Called at open, before anything is written. */
  async start(): Promise<void> {
    await this.removeOf(this.folder.catalogue.pending, Infinity);
    await this.collect();
  }

  /** Removes the superseded versions that are due; sets a timer if others remain. */
  collect(): Promise<void> {
    return this.queue.run(async () => {
      if (await this.removeOf(this.folder.catalogue.superseded, Date.now() - this.delayMs)) this.schedule();
    });
  }

  /** Schedules a run after the delay. The timer does not keep the process alive. */
  schedule(): void {
    this.timer ??= setTimeout(() => this.collectInBackground(), this.delayMs).unref();
  }

  /** Run by the timer. `Storage.stats` reports an error, and the next run tries again. */
  private async collectInBackground(): Promise<void> {
    this.timer = undefined;
    try {
      await this.collect();
      this.lastError = undefined;
    } catch (error) {
      this.lastError = error;
      this.schedule();
    }
  }

  async stop(): Promise<void> {
    await this.queue.idle();
    clearTimeout(this.timer);
  }

  /** Removes the folders that `table` has named since `until` or earlier; returns true if later ones remain. */
  private async removeOf(table: Table<{ since: number }>, until: number): Promise<boolean> {
    let due: string[] = [];
    let othersRemain = false;
    const remove = async () => {
      await removeVersions(this.folder.dir, due);
      this.onRemoved(due);
      const deletes: CatalogueChange[] = due.map((path) => table.delete(path));
      await this.folder.catalogue.write(deletes);
      due = [];
    };
    for await (const { key, record } of table.scan()) {
      // The folder of a damaged record stays, because its key may be damaged as well; `verify` lists it.
      if (!record) continue;
      if (record.since > until) othersRemain = true;
      else due.push(key);
      if (due.length === BATCH_RECORDS) await remove();
    }
    await remove();
    return othersRemain;
  }
}
