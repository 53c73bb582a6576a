/** Removes the files that no record names: of writes that a dead process left behind, and of replaced versions. */
import { SerialQueue } from '../../async/index.js';
import type { CatalogueChange, Table } from '../catalogue/catalogue.js';
import type { DataFolder } from './data-folder.js';
import { removeVersions } from './version-folder.js';

const BATCH_RECORDS = 500;

/**
 * Invariant: a version folder is removed only while `pending` (at open, when nothing is being written) or `superseded`
 * names it, and its record goes after its files, so a sweep that was cut off is taken up by the next one.
 */
export class VersionGc {
  lastError: unknown;
  private timer: NodeJS.Timeout | undefined;
  private readonly queue = new SerialQueue();

  constructor(
    private readonly folder: DataFolder,
    /** How long a superseded version stays, ms. */
    private readonly delayMs: number,
    /** Is told of folders that it has removed. */
    private readonly onRemoved: (folders: string[]) => void = () => {},
  ) {}

  /** Once at open, before anything is written. */
  async start(): Promise<void> {
    await this.removeOf(this.folder.catalogue.pending, Infinity);
    await this.collect();
  }

  /** Removes the superseded versions that are due; sets a timer where some are left. */
  collect(): Promise<void> {
    return this.queue.run(async () => {
      if (await this.removeOf(this.folder.catalogue.superseded, Date.now() - this.delayMs)) this.schedule();
    });
  }

  /** Sees to it that a sweep comes after the delay. It does not keep the process alive. */
  schedule(): void {
    this.timer ??= setTimeout(() => this.collectInBackground(), this.delayMs).unref();
  }

  /** By the timer: nobody waits for it, so an error is kept for `Storage.stats`, and the next round tries again. */
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

  /** Removes the folders that `table` names since `until` or earlier. Whether later ones are left. */
  private async removeOf(table: Table<{ since: number }>, until: number): Promise<boolean> {
    let due: string[] = [];
    let left = false;
    const remove = async () => {
      await removeVersions(this.folder.dir, due);
      this.onRemoved(due);
      const deletes: CatalogueChange[] = due.map((path) => table.delete(path));
      await this.folder.catalogue.write(deletes);
      due = [];
    };
    for await (const { key, record } of table.scan()) {
      // What a damaged record names is doubtful, so its folder stays; `verify` lists it.
      if (!record) continue;
      if (record.since > until) left = true;
      else due.push(key);
      if (due.length === BATCH_RECORDS) await remove();
    }
    await remove();
    return left;
  }
}
