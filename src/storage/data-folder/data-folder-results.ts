/** Folders below `<data>/results` with the files that jobs return. `src/jobs/records.ts` says how long they are kept. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { checkedName, onDisk } from '../files/index.js';
import { removeOld } from './data-folder-scratch.js';

export class Results {
  private readonly root: string;

  constructor(private readonly dir: string) {
    this.root = join(dir, 'results');
  }

  /** Creates the folder for the files that a job returns, and returns its path. Throws TW_STORAGE_BAD_NAME. */
  async makeFolder(job: string): Promise<string> {
    const folder = this.folder(job);
    await onDisk(this.dir, () => mkdir(folder, { recursive: true }));
    return folder;
  }

  /** Path of a file that a job has returned. Throws TW_STORAGE_BAD_NAME. */
  path(job: string, name: string): string {
    return join(this.folder(job), checkedName('file name', name));
  }

  /** Removes folders that were last changed before the time `before`, unless `isKept` returns true for their job. */
  expire(before: number, isKept: (job: string) => Promise<boolean>): Promise<void> {
    return onDisk(this.dir, async () => {
      await mkdir(this.root, { recursive: true });
      await removeOld(this.root, before, isKept);
    });
  }

  private folder(job: string): string {
    return join(this.root, checkedName('version', job));
  }
}
