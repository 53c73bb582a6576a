import { fsyncFolders } from '../files/index.js';

/**
 * Syncs folders for many writers at the same time. Requests that arrive during one round of fsync are collected for the
 * next, which syncs each folder once.
 *
 * Invariant: `sync` resolves only after a round that began after the call, so that round covers everything the caller did.
 */
export class GroupFsync {
  private pending = new Set<string>();
  private next: Promise<void> | undefined;
  private last: Promise<void> = Promise.resolve();

  sync(folders: Iterable<string>): Promise<void> {
    for (const folder of folders) this.pending.add(folder);
    this.next ??= this.last.then(() => {
      const round = this.pending;
      this.pending = new Set();
      this.next = undefined;
      const done = fsyncFolders(round);
      // The callers of this round get its errors; the next round runs anyway.
      this.last = done.catch(() => {});
      return done;
    });
    return this.next;
  }
}
