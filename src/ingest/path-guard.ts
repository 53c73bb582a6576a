/**
 * Restricts a job to folders that the operator allows, even if others may write there: a file or folder can become a link at
 * any time. No link is followed, and files are opened by their real paths.
 */
import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { NOTHING_THERE, notRecognised, pathNotAllowed } from './errors.js';

/** A folder of SAFE products is six levels deep. Deeper folders are refused without being read. */
const MAX_DEPTH = 6;

/** Invariant: `recordedStates` holds the first state of each file that was checked. */
export class PathGuard {
  private readonly recordedStates = new Map<string, string>();

  /** `folders`: real paths. */
  constructor(private readonly folders: string[]) {}

  /**
   * The real path of a file or product folder. Checks everything that may be opened beside or below it. Throws
   * TW_INGEST_NOT_RECOGNISED if the path is inside but does not exist, and TW_INGEST_OUTSIDE if it is outside or holds a link.
   */
  async resolveAllowed(path: string): Promise<string> {
    // Resolves `..` without the file system: the answer must not depend on folders outside.
    const lexical = resolve(path);
    const real = await realpath(lexical).catch(async (error) => {
      if (await this.lacks(lexical)) throw notRecognised.because(error, path, NOTHING_THERE);
      throw pathNotAllowed.because(error, path);
    });
    if (!this.encloses(real)) throw pathNotAllowed(path);
    // Metadata files refer to the files beside them.
    const product = /\.(txt|json|xml|hdr)$/i.test(real) ? dirname(real) : real;
    const refused = await findDisallowedEntry(product, MAX_DEPTH).catch((error) => {
      throw pathNotAllowed.because(error, path);
    });
    if (refused !== undefined) throw pathNotAllowed(path, refused);
    return real;
  }

  /**
   * Throws TW_INGEST_OUTSIDE if a file is not at its real path, or has changed since the first check. A check before and after
   * reading detects a file that was replaced even for a moment, because renaming changes its ctime.
   */
  async assertUnchanged(paths: Iterable<string>): Promise<void> {
    for (const path of new Set(paths)) {
      const [real, file] = await Promise.all([realpath(path), lstat(path, { bigint: true })]).catch(
        (error) => {
          throw pathNotAllowed.because(error, path);
        },
      );
      const state = [file.dev, file.ino, file.ctimeNs].join();
      const before = this.recordedStates.get(path) ?? state;
      if (real !== path || !this.encloses(real) || !file.isFile() || state !== before) {
        throw pathNotAllowed(path);
      }
      this.recordedStates.set(path, state);
    }
  }

  /**
   * True if `path` and the real path of its parent are inside and the name does not exist. A broken link counts as existing:
   * the answer must not reveal whether its target exists.
   */
  private async lacks(path: string): Promise<boolean> {
    if (!this.encloses(path)) return false;
    // A parent that does not exist is not inside.
    const parent = await realpath(dirname(path)).catch(() => undefined);
    if (parent === undefined || !this.encloses(parent)) return false;
    return lstat(join(parent, basename(path))).then(
      () => false,
      ({ code }: NodeJS.ErrnoException) => code === 'ENOENT',
    );
  }

  private encloses(real: string): boolean {
    return this.folders.some((folder) => {
      const below = relative(folder, real);
      return below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below);
    });
  }
}

/** Returns the first path that is a link or a special file, or a folder that is too deep. */
async function findDisallowedEntry(path: string, levels: number): Promise<string | undefined> {
  if (!(await stat(path)).isDirectory()) return undefined;
  if (levels === 0) return path;
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const below = join(path, entry.name);
    if (!entry.isFile() && !entry.isDirectory()) return below;
    const found = entry.isDirectory() ? await findDisallowedEntry(below, levels - 1) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
