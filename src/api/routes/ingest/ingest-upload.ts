/** Uploaded files. They are streamed to a scratch folder, ingested from there, and removed afterwards. */
import type { Hash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { basename, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { TilewrightError } from '../../../errors.js';
import { asStorageError } from '../../../storage/index.js';
import type { Services } from '../../api-services.js';
import { badRequest, bodyTooLarge, uploadAborted } from '../../errors.js';

/** File systems accept 255. */
const MAX_NAME_BYTES = 200;

/**
 * A file name that is safe on disk: the last part of the path, with letters, digits, spaces and `._()+,=@-` only, and not hidden. A long
 * name keeps its end, which states the type. Names are changed as little as possible, because scene ids come from them.
 */
export function safeName(filename: string): string {
  const base = filename.split(/[/\\]/).at(-1) ?? '';
  const characters = [...base.replace(/[^\p{L}\p{M}\p{N} ._()+,=@-]+/gu, '-').slice(-MAX_NAME_BYTES)];
  while (Buffer.byteLength(characters.join('')) > MAX_NAME_BYTES) characters.shift();
  return characters.join('').replace(/^[^\p{L}\p{N}_]+/u, '') || 'upload';
}

/** Refuses an upload before it is sent if it is too large by its Content-Length. Throws TW_API_TOO_LARGE, TW_STORAGE_DISK_LOW. */
export async function checkUploadSize(contentLength: string | undefined, services: Services): Promise<void> {
  const bytes = Number(contentLength ?? 0);
  if (bytes > services.maxUpload) throw bodyTooLarge(services.maxUpload, 'file');
  await services.storage.reserve.check(bytes);
}

interface Upload {
  path: string;
  /** Name of the scratch folder that contains the file. */
  scratch: string;
}

/**
 * Writes a body to a file in its own scratch folder, synced so that it outlives a power cut, and updates `digest` with all bytes. Removes
 * the folder on failure. Throws TW_API_TOO_LARGE, TW_API_CUT_OFF, TW_STORAGE_DISK_LOW.
 */
export async function saveUpload(
  body: Readable,
  filename: string,
  services: Services,
  digest?: Hash,
): Promise<Upload> {
  const { storage, maxUpload } = services;
  const folder = await storage.scratch.make('upload');
  const path = join(folder, safeName(filename));
  const scratch = basename(folder);
  let bytes = 0;
  const chunks = async function* () {
    // A refused body must not be destroyed, because its socket carries the answer.
    for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxUpload) throw bodyTooLarge(maxUpload, 'file');
      await storage.reserve.check(chunk.length);
      digest?.update(chunk);
      yield chunk;
    }
  };
  try {
    await pipeline(chunks, createWriteStream(path, { flags: 'wx', highWaterMark: 1 << 20, flush: true }));
    if (bytes === 0) throw badRequest('the file is empty');
    await storage.scratch.sync(scratch);
    return { path, scratch };
  } catch (error) {
    await storage.scratch.remove(scratch);
    if (error instanceof TilewrightError) throw error;
    // A body that was read to its end is destroyed too, but not aborted.
    if (body.readableAborted || body.errored) throw uploadAborted.because(error, filename);
    throw asStorageError(error, storage.dir);
  }
}
