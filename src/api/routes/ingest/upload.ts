/** Files in the bodies of requests: streamed to a scratch folder, ingested from there, removed after. */
import type { Hash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { basename, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { TilewrightError } from '../../../errors.js';
import { asStorageError } from '../../../storage/index.js';
import { badRequest, bodyTooLarge, uploadAborted } from '../../errors.js';
import type { Services } from '../../services.js';

/** File systems accept 255. */
const LONGEST_NAME_BYTES = 200;

/**
 * The last part of a path, of letters, digits, spaces and `._()+,=@-` only, not hidden. The end of a long name stays, because it says the
 * type. Other names stay as they are, because ids of scenes come from them.
 */
export function safeName(filename: string): string {
  const base = filename.split(/[/\\]/).at(-1) ?? '';
  const characters = [...base.replace(/[^\p{L}\p{M}\p{N} ._()+,=@-]+/gu, '-').slice(-LONGEST_NAME_BYTES)];
  while (Buffer.byteLength(characters.join('')) > LONGEST_NAME_BYTES) characters.shift();
  return characters.join('').replace(/^[^\p{L}\p{N}_]+/u, '') || 'upload';
}

/** Refuses what is too long by its own account, or for the disk, before it is sent. Throws TW_API_TOO_LARGE, TW_STORAGE_DISK_LOW. */
export async function checkUploadSize(contentLength: string | undefined, services: Services): Promise<void> {
  const bytes = Number(contentLength ?? 0);
  if (bytes > services.maxUpload) throw bodyTooLarge(services.maxUpload, 'file');
  await services.storage.reserve.check(bytes);
}

export interface Upload {
  path: string;
  /** Name of the scratch folder that holds it. */
  scratch: string;
}

/**
 * Writes a body to a file in a scratch folder of its own, so that it is there also after a power cut; `digest` hears of
 * every byte. Nothing stays if it fails. Throws TW_API_TOO_LARGE,
 * TW_API_CUT_OFF, TW_STORAGE_DISK_LOW.
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
    // The body is not destroyed when it is refused, for its socket carries the answer.
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
    // A body that was read to its end is destroyed as well, but not aborted.
    if (body.readableAborted || body.errored) throw uploadAborted.because(error, filename);
    throw asStorageError(error, storage.dir);
  }
}
