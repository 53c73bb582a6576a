/**
 * Makes a local copy of a remote raster that can be opened. The copy has the size of the remote file, and holes in place of the bytes that
 * were not read, so that all offsets in it are right. Files of hosts that cannot send parts are downloaded as a whole.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { readTiffFrom } from '../../raster/index.js';
import {
  type DownloadTarget,
  downloadFile,
  type FileVersion,
  type HttpClient,
  noRanges,
  RemoteFile,
  remoteTooLarge,
  withoutSecrets,
} from '../../remote/index.js';
import { asStorageError } from '../../storage/index.js';
import type { WholeFiles } from './whole-files.js';

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
