import { fsyncFolders } from '../files/durable-fs.js';

/**
 * Makes names in folders durable for many writers at once: while one round of fsync is under way, what is asked for
 * gathers for the next, which syncs each folder once.
 *
 * Invariant: `sync` ends only after a round that began after its call, so everything that the caller had done is in it.
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
      // Its callers are told of its errors; the round after it is not concerned.
      this.last = done.catch(() => {});
      return done;
    });
    return this.next;
  }
}
