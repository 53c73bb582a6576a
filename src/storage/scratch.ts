/**
 * Folders for temporary files below `<data>/scratch`, and for results of jobs below `<data>/results`. A temporary folder outlives the
 * process only if its work can be resumed.
 */
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { Catalogue } from './catalogue.js';
import { onDisk, orIfMissing } from './disk.js';
import { checkedName, isVersion, newVersion } from './file-names.js';
import { fsyncFolders } from './files.js';

const SCRATCH = 'scratch';
const PERSISTENT_PREFIX = 'kept-';

/** The path for a file that will soon be renamed within the data folder `dir`. */
export function scratchFile(dir: string): string {
  return join(dir, SCRATCH, newVersion());
}

/** The scratch folders of a data folder. All paths are absolute. Bad names throw TW_STORAGE_BAD_NAME. */
export class Scratch {
  private readonly root: string;

  constructor(private readonly dir: string) {
    this.root = resolve(dir, SCRATCH);
  }

  /**
   * Creates an empty folder whose name begins with `name`, and returns its path. The caller removes it. The next open removes what
   * a crash leaves, unless the record of a resumable job names the folder.
   */
  async make(name = 'work'): Promise<string> {
    return this.create(`${checkedName('file name', name)}-${newVersion()}`);
  }

  /** Creates the folder for the state from which a job resumes after a crash, and returns its path. The end of the job removes it. */
  async makeForJob(job: string): Promise<string> {
    return this.create(checkedName('file name', job));
  }

  /**
   * Creates a folder with state from which work resumes, whichever job does it, and returns its path; `name` identifies the work. The
   * caller removes it when the work is done; `expire` removes old ones.
   */
  async makePersistent(name: string): Promise<string> {
    return this.create(`${PERSISTENT_PREFIX}${checkedName('file name', name)}`);
  }

  /** Makes the name of a folder and the names in it durable; its files have been synced. `name` is the folder's own name. */
  async sync(name: string): Promise<void> {
    const folder = this.path(name);
    await onDisk(this.dir, () => fsyncFolders([folder, this.root, this.dir]));
  }

  /** Removes a folder, given by its name or its path. */
  async remove(folder: string): Promise<void> {
    const path = this.path(dirname(folder) === this.root ? basename(folder) : folder);
    await onDisk(this.dir, () => rm(path, { recursive: true, force: true }));
  }

  /** Removes everything that no resumable job or later work needs. Called at open, before anything is written. */
  async clean(catalogue: Catalogue): Promise<void> {
    const kept = new Set<string>();
    for await (const { record } of catalogue.jobs.scan())
      if (record?.resumable && record.finished === undefined)
        for (const name of [record.id, ...(record.uploads ?? [])]) kept.add(name);
    await onDisk(this.dir, async () => {
      await mkdir(this.root, { recursive: true });
      for (const name of await readdir(this.root)) {
        if (kept.has(name) || name.startsWith(PERSISTENT_PREFIX)) continue;
        await rm(join(this.root, name), { recursive: true, force: true });
      }
    });
  }

  /**
   * Removes the state of work that was last changed before the time `before`, in ms since 1970, unless `isKept` returns true for its job.
   * Other folders belong to running work, which removes them.
   */
  expire(before: number, isKept: (job: string) => Promise<boolean>): Promise<void> {
    const isState = (name: string) => name.startsWith(PERSISTENT_PREFIX) || isVersion(name);
    return onDisk(this.dir, () =>
      removeOld(this.root, before, async (name) => !isState(name) || isKept(name)),
    );
  }

  private async create(name: string): Promise<string> {
    const folder = join(this.root, name);
    await onDisk(this.dir, () => mkdir(folder, { recursive: true }));
    return folder;
  }

  private path(name: string): string {
    return join(this.root, checkedName('file name', name));
  }
}

/** Removes the entries of `folder` that were last changed before the time `before`, except those for which `isKept` returns true. */
async function removeOld(
  folder: string,
  before: number,
  isKept: (name: string) => Promise<boolean>,
): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    // It may have been removed or renamed in the meantime.
    const info = await orIfMissing(stat(path), undefined);
    if (info && info.mtimeMs < before && !(await isKept(name)))
      await rm(path, { recursive: true, force: true });
  }
}

/** Folders below `<data>/results` with the files that jobs return. `src/jobs/records.ts` says how long they are kept. */
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
