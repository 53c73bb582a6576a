/**
 * Keeps the files of a scene that were read as a whole, so that a resumed job does not read them again. They are in a folder of the scene,
 * as a second name of the file that ingest uses, and are removed with the scene's folder.
 */
import { createHash } from 'node:crypto';
import { link, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { withoutSignature } from '../../remote/index.js';

const FOLDER = 'whole';

/** A file without a version or a size cannot be compared with that of the host. */
interface KnownFile {
  url: string;
  version: string | undefined;
  size: number | undefined;
}

/** Invariant: a kept file is complete and on the disk, even after a power cut. */
export class WholeFiles {
  private constructor(private readonly folder: string) {}

  /** `scene`: the scene's folder. Removes everything else that an earlier process has left there. */
  static async open(scene: string): Promise<WholeFiles> {
    const folder = join(scene, FOLDER);
    await mkdir(folder, { recursive: true });
    for (const name of await readdir(scene))
      if (name !== FOLDER) await rm(join(scene, name), { recursive: true, force: true });
    return new WholeFiles(folder);
  }

  /** Gives a kept file the name `path`, and returns true; false if the file is not kept. */
  async take(file: KnownFile, path: string): Promise<boolean> {
    const kept = this.pathOf(file);
    if (kept === undefined) return false;
    try {
      await link(kept, path);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
      throw error;
    }
  }

  /** Keeps the complete file `path`. */
  async keep(file: KnownFile, path: string): Promise<void> {
    const kept = this.pathOf(file);
    if (kept === undefined) return;
    const handle = await open(path, 'r+');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
    // Two assets can have the same address. File systems without links do not keep files, and a resumed job reads them again.
    await link(path, kept).catch(() => undefined);
  }

  private pathOf({ url, version, size }: KnownFile): string | undefined {
    if (version === undefined || size === undefined) return undefined;
    const identity = JSON.stringify([withoutSignature(url), version, size]);
    return join(this.folder, createHash('sha256').update(identity).digest('hex'));
  }
}
