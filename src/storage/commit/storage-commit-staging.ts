/** Version folders of one write, from before they exist until their records are committed. */
import { writeFile } from 'node:fs/promises';
import type { Catalogue } from '../catalogue/index.js';
import { fsyncPath, publishVersions, removeVersions, stageVersion, writeFileSynced } from '../files/index.js';
import type { Commit } from './storage-commit.js';
import type { WriteLock } from './storage-commit-lock.js';

/** A folder is `planned` before it exists, `staged` while its files are written, and `published` under its final name. */
type FolderState = 'planned' | 'staged' | 'published';

/**
 * Invariants, even after a kill at any moment: a version folder of this write is named by a record of `pending` from before it exists until
 * the batch that commits it. So the next open can remove what is left of a write without a walk of the disk, and never removes
 * anything that is committed. A commit names published folders only, and these are durable before.
 */
export class StagedVersions {
  private readonly states = new Map<string, FolderState>();

  constructor(
    private readonly dir: string,
    private readonly catalogue: Catalogue,
    private readonly lock: WriteLock,
  ) {}

  stateOf(folder: string): FolderState | undefined {
    return this.states.get(folder);
  }

  /** The folders in a state. */
  inState(state: FolderState): string[] {
    return [...this.states].filter(([, one]) => one === state).map(([folder]) => folder);
  }

  /** Records durably which folders will be written. Best called with many. */
  async plan(folders: string[]): Promise<void> {
    const { pending } = this.catalogue;
    const since = Date.now();
    await this.catalogue.write(folders.map((folder) => pending.set(folder, { since })));
    this.setState(folders, 'planned');
  }

  /** Creates the folder for the files of a planned version and returns its absolute path. */
  stage(folder: string): Promise<string> {
    this.setState([folder], 'staged');
    return stageVersion(this.dir, folder);
  }

  /** Writes a file into a staging folder, synced if the lock requires it. Throws errors of the file system. */
  writeFile(path: string, bytes: Uint8Array): Promise<void> {
    return this.lock.requiresFsync ? writeFileSynced(path, bytes) : writeFile(path, bytes);
  }

  /** Syncs a file that other code wrote into a staging folder, if the lock requires it. Throws errors of the file system. */
  async syncFile(path: string): Promise<void> {
    if (this.lock.requiresFsync) await fsyncPath(path);
  }

  /** Makes staged folders durable under their final names. Best called with many. */
  async publish(folders: string[]): Promise<void> {
    await publishVersions(this.dir, folders, this.lock.requiresFsync);
    await this.lock.upload(folders);
    this.setState(folders, 'published');
  }

  /** Commits the result of `build`, which names `folders`. These are then no longer part of this write. */
  async commit(folders: string[], build: () => Promise<Commit>): Promise<void> {
    const { pending } = this.catalogue;
    try {
      await this.lock.commit(
        build,
        folders.map((folder) => pending.delete(folder)),
      );
    } catch (error) {
      // Only the next open can tell whether they are committed: until then their files and pending records stay.
      if (this.lock.isUncertain) this.forget(folders);
      throw error;
    }
    this.forget(folders);
  }

  /** Removes the files of folders, which remain planned. */
  async remove(folders: string[]): Promise<void> {
    await removeVersions(this.dir, folders);
    this.setState(folders, 'planned');
  }

  /** Removes the files and pending records of all folders that are not committed. Their writers must have stopped before. */
  async discard(): Promise<void> {
    // After a failed write, only the next open can tell what is committed: the files must stay until then.
    if (this.catalogue.writeError !== undefined || this.states.size === 0) return;
    await this.remove([...this.inState('staged'), ...this.inState('published')]);
    const { pending } = this.catalogue;
    await this.catalogue.write([...this.states.keys()].map((folder) => pending.delete(folder)));
    this.states.clear();
  }

  private setState(folders: string[], state: FolderState): void {
    for (const folder of folders) this.states.set(folder, state);
  }

  private forget(folders: string[]): void {
    for (const folder of folders) this.states.delete(folder);
  }
}
