/**
 * Makes a local copy of a remote raster that can be opened. The copy has the size of the remote file, and holes in place of the bytes that
 * were not read, so that all offsets in it are right. Files of hosts that cannot send parts are downloaded as a whole, and kept for a
 * resumed job.
 */

import { createHash } from 'node:crypto';
import { type FileHandle, link, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readTiffFrom } from '../raster/index.js';
import {
  type DownloadTarget,
  downloadFile,
  type FileVersion,
  type HttpClient,
  noRanges,
  RemoteFile,
  remoteTooLarge,
  withoutSecrets,
  withoutSignature,
} from '../remote/index.js';
import { asStorageError } from '../storage/index.js';

/** Limit of a file that is downloaded as a whole. The largest scenes in JPEG 2000 have 1 GB. */
const MAX_WHOLE_BYTES = 8e9;

export interface CopyContext {
  client: HttpClient;
  /** Throws if the disk has too little space for so many bytes. */
  checkSpace(bytes: number): Promise<void>;
  /** Files of the scene that are kept for a resumed job. */
  whole: WholeFiles;
  signal?: AbortSignal;
}

/** Returns the file whose parts are still to be read; its bytes if the copy is complete. Throws TW_REMOTE_... and TW_RASTER_... */
export async function openRemoteCopy(
  context: CopyContext,
  url: string,
  path: string,
): Promise<RemoteFile | number> {
  const { client, signal, whole } = context;
  const file = await RemoteFile.open(client, url, signal).catch((error) => {
    if (!noRanges.is(error)) throw error;
  });
  if (!file) return download(context, url, path);
  const isTiff = isTiffStart(file.start);
  // All of another format is read.
  if (!isTiff && file.size > MAX_WHOLE_BYTES) throw remoteTooLarge(withoutSecrets(url), MAX_WHOLE_BYTES);
  if (!isTiff && (await whole.take(file, path))) {
    file.isComplete = true;
    return file;
  }
  const copy = await open(path, 'wx');
  try {
    await copy.truncate(file.size);
    await writeFully(copy, file.start, 0);
    // GDAL finds what it needs to open other formats in the first bytes.
    if (isTiff)
      await readTiffFrom({
        ...{ path: withoutSecrets(url), size: file.size, start: file.start },
        handle: headerReader(file, copy),
      });
    return file;
  } finally {
    await copy.close();
  }
}

/** Magic numbers of TIFF and BigTIFF in both byte orders. */
const TIFF_STARTS = ['49492a00', '4d4d002a', '49492b00', '4d4d002b'];

export const isTiffStart = (bytes: Buffer) => TIFF_STARTS.includes(bytes.toString('hex', 0, 4));

async function download(
  { client, checkSpace, signal, whole }: CopyContext,
  url: string,
  path: string,
): Promise<number> {
  let copy: FileHandle | undefined;
  let file: FileVersion = { url, version: undefined, size: undefined };
  try {
    const target: DownloadTarget = {
      async start(found) {
        file = found;
        if (!copy && (await whole.take(file, path))) return false;
        await checkSpace(file.size ?? 0);
        copy ??= await open(path, 'wx');
        await copy.truncate(0);
        return true;
      },
      async write(chunk, position) {
        // A host need not announce the length.
        await checkSpace(chunk.length);
        await writeFully(copy!, chunk, position);
      },
    };
    const bytes = await downloadFile(client, url, target, { maxBytes: MAX_WHOLE_BYTES, signal });
    if (!copy) return file.size!;
    if (file.encoding !== undefined)
      await RemoteFile.decompress(path, file, {
        maxBytes: MAX_WHOLE_BYTES,
        signal,
        onBytes: checkSpace,
      }).catch((error) => {
        throw asStorageError(error, 'the folder of remote files');
      });
    await whole.keep(file, path);
    return bytes;
  } finally {
    await copy?.close();
  }
}

/** Limit of the header of a GeoTIFF. That of 10,000 blocks has 0.2 MB. */
const MAX_HEADER_BYTES = 64e6;

/** Reads parts of a remote file that lie in a header, a few of them ahead, and copies them. */
function headerReader(file: RemoteFile, copy: FileHandle) {
  const known: { offset: number; data: Buffer }[] = [{ offset: 0, data: file.start }];
  let bytes = 0;
  const find = (from: number, length: number) =>
    known.find(({ offset, data }) => from >= offset && from + length <= offset + data.length);
  const checkPart = (position: number, length: number) => {
    if (!find(position, length) && bytes + length > MAX_HEADER_BYTES)
      throw remoteTooLarge(withoutSecrets(file.url), MAX_HEADER_BYTES);
  };
  return {
    checkPart,
    async read(into: Uint8Array, at: number, length: number, position: number) {
      checkPart(position, length);
      let part = find(position, length);
      if (!part) {
        part = await file.readAhead({ offset: position, bytes: length });
        bytes += part.data.length;
        known.push(part);
        await writeFully(copy, part.data, part.offset);
      }
      into.set(part.data.subarray(position - part.offset, position - part.offset + length), at);
      return { bytesRead: length };
    },
  };
}

/** Throws TW_STORAGE_FULL and other errors of the disk, which are not those of the host. */
export async function writeFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  try {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
      done += bytesWritten;
    }
  } catch (error) {
    throw asStorageError(error, 'the folder of remote files');
  }
}

const WHOLE_FOLDER = 'whole';

/** A file without a version or a size cannot be compared with that of the host. */
interface KnownFile {
  url: string;
  version: string | undefined;
  size: number | undefined;
}

/**
 * Keeps the files of a scene that were read as a whole, so that a resumed job does not read them again. They are in a folder of the scene,
 * as a second name of the file that ingest uses, and are removed with the scene's folder. Invariant: a kept file is complete and on the
 * disk, even after a power cut.
 */
export class WholeFiles {
  private constructor(private readonly folder: string) {}

  /** `scene`: the scene's folder. Removes everything else that an earlier process has left there. */
  static async open(scene: string): Promise<WholeFiles> {
    const folder = join(scene, WHOLE_FOLDER);
    await mkdir(folder, { recursive: true });
    for (const name of await readdir(scene))
      if (name !== WHOLE_FOLDER) await rm(join(scene, name), { recursive: true, force: true });
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
