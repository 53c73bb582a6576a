/**
 * Detects files that make GDAL's libraries open another file at any path: an upload could read the server's disk through them.
 */
import { createReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { corrupt, unsupported } from '../errors.js';
import { withFile } from '../file-access/index.js';

/** Throws TW_RASTER_UNSUPPORTED if a file for `driver` refers to another file, and TW_RASTER_CORRUPT. */
export async function rejectExternalReferences(path: string, driver: string): Promise<void> {
  if (driver.startsWith('HDF4')) await withFile(path, ({ handle }) => rejectExternalElements(handle, path));
  if (driver === 'HFA') await withFile(path, ({ handle }) => rejectExternalRasters(handle, path));
}

async function bytesAt(file: FileHandle, position: number, size: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, position);
  return buffer.subarray(0, bytesRead);
}

const BLOCK_HEADER = 6;
const DESCRIPTOR = 12;
/** Bit in the tag of an element with special storage. Tags of users also have `USER`, and are never special. */
const SPECIAL = 0x4000;
const USER = 0x8000;
const EXTERNAL = 2;
const MAX_DESCRIPTORS = 1_000_000;

/**
 * HDF4 (HDF Specification and Developer's Guide, chapters 2 and 8): blocks of data descriptors, each a tag, a reference, an
 * offset and a length. The data of a special tag starts with a code; 2 is an element in another file.
 */
async function rejectExternalElements(file: FileHandle, path: string): Promise<void> {
  let seen = 0;
  const blocks = new Set<number>();
  for (let block = 4; block !== 0; ) {
    if (blocks.has(block)) throw corrupt(path, 'the blocks of its directory lead in a circle');
    blocks.add(block);
    const header = await bytesAt(file, block, BLOCK_HEADER);
    // GDAL reports the error of a file that ends here.
    if (header.length < BLOCK_HEADER) return;
    const descriptors = await bytesAt(file, block + BLOCK_HEADER, header.readUInt16BE(0) * DESCRIPTOR);
    seen += 1 + descriptors.length / DESCRIPTOR;
    if (seen > MAX_DESCRIPTORS) throw corrupt(path, 'its directory does not end');
    for (let at = 0; at + DESCRIPTOR <= descriptors.length; at += DESCRIPTOR) {
      const tag = descriptors.readUInt16BE(at);
      if (!(tag & SPECIAL) || tag & USER) continue;
      const code = await bytesAt(file, descriptors.readUInt32BE(at + 4), 2);
      if (code.length === 2 && code.readUInt16BE(0) === EXTERNAL)
        throw unsupported(path, 'part of its data is in another file (an HDF4 external element)');
    }
    block = header.readUInt32BE(2);
  }
}

const EXTERNAL_RASTER = 'externalrasterdms\0';
/** Offsets in an entry of an Erdas Imagine file: position and size of its data, and its name. */
const DATA_IN_ENTRY = 16;
const NAME_IN_ENTRY = 24;
const MAX_DATASET_NAMES = 65_536;

/** Erdas Imagine: an entry of this name refers to the file with the pixels, which must be beside it. */
async function rejectExternalRasters(file: FileHandle, path: string): Promise<void> {
  let start = 0;
  let text = '';
  for await (const chunk of createReadStream(path)) {
    text += (chunk as Buffer).toString('latin1').toLowerCase();
    for (let at = text.indexOf(EXTERNAL_RASTER); at >= 0; at = text.indexOf(EXTERNAL_RASTER, at + 1)) {
      const place = await bytesAt(file, Math.max(0, start + at - NAME_IN_ENTRY + DATA_IN_ENTRY), 8);
      if (place.length < 8) continue;
      const size = place.readUInt32LE(4);
      const names = await bytesAt(file, place.readUInt32LE(0), Math.min(size, MAX_DATASET_NAMES));
      if (size > MAX_DATASET_NAMES || /[/\\]/.test(names.toString('latin1')))
        throw unsupported(path, 'its pixels are in a file of another folder (an Erdas external raster)');
    }
    const kept = Math.min(text.length, EXTERNAL_RASTER.length - 1);
    start += text.length - kept;
    text = text.slice(text.length - kept);
  }
}
