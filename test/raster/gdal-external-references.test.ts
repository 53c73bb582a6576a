/** Files that name other files, made out of real ones: GDAL would read those for whoever sends the first. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { rejectExternalReferences } from '../../src/raster/formats/gdal-process.js';
import { tempFolder } from '../support/temp.js';

const REFUSED = { code: 'TW_RASTER_UNSUPPORTED' };

/** An HDF4 file of one directory block, with one element of a special tag. */
function hdf4(code: number, { tag = 702 | 0x4000, next = 0 } = {}): Buffer {
  const file = Buffer.alloc(60);
  file.writeUInt32BE(0x0e031301, 0);
  file.writeUInt16BE(1, 4);
  file.writeUInt32BE(next, 6);
  file.writeUInt16BE(tag, 10);
  file.writeUInt16BE(1, 12);
  file.writeUInt32BE(40, 14);
  file.writeUInt32BE(16, 18);
  file.writeUInt16BE(code, 40);
  return file;
}

test('an HDF4 file with an element in another file is refused', async (t) => {
  const path = join(await tempFolder(t), 'a.hdf');
  const check = async (bytes: Buffer) => {
    await writeFile(path, bytes);
    await rejectExternalReferences(path, 'HDF4Image');
  };
  await assert.rejects(check(hdf4(2)), REFUSED);
  for (const code of [1, 3, 5]) await check(hdf4(code));
  await check(hdf4(2, { tag: 702 }));
  await check(hdf4(2, { tag: 702 | 0xc000 }));
  await assert.rejects(check(hdf4(1, { next: 4 })), { code: 'TW_RASTER_CORRUPT' }, 'a directory in a circle');
  await check(hdf4(1, { next: 1000 }));
});

/** An entry of an Erdas Imagine file after some other bytes, and the data that it points to. */
function hfa(name: string, spill: string, before: number): Buffer {
  const entry = Buffer.alloc(128);
  const data = Buffer.from(`\x06\0\0\0\x10\0\0\0${spill}\0`, 'latin1');
  entry.writeUInt32LE(before + entry.length, 16);
  entry.writeUInt32LE(data.length, 20);
  entry.write(name, 24, 'latin1');
  entry.write(name, 88, 'latin1');
  return Buffer.concat([Buffer.alloc(before, 'EHFA_HEADER_TAG/'), entry, data]);
}

test('an Erdas file with pixels in another folder is refused, but not one with a file beside it', async (t) => {
  const path = join(await tempFolder(t), 'a.img');
  const check = async (bytes: Buffer) => {
    await writeFile(path, bytes);
    await rejectExternalReferences(path, 'HFA');
  };
  // The second one spans two chunks of reading.
  for (const before of [1000, 65_536 - 30]) {
    await assert.rejects(check(hfa('ExternalRasterDMS', '../../secret.ige', before)), REFUSED);
    await assert.rejects(check(hfa('eXTERNALrASTERdms', '/etc/secret', before)), REFUSED);
    await assert.rejects(check(hfa('ExternalRasterDMS', `${'a'.repeat(70_000)}/secret`, before)), REFUSED);
    await check(hfa('ExternalRasterDMS', 'a.ige', before));
    await check(hfa('RasterDMS', '../a', before));
  }
});
