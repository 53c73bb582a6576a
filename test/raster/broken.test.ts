import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { TilewrightError } from '../../src/errors.js';
import { encodeCog, openRaster, readRaster } from '../../src/raster/index.js';
import { atEnd } from '../support/at-end.js';
import { fixtures, temporaryFolder } from './gdal.js';
import { image } from './images.js';

async function refusal(path: string): Promise<TilewrightError> {
  const error = await readRaster(path).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof TilewrightError, `${path}: ${error}`);
  assert.ok(error.message.includes(path) || error.code === 'TW_RASTER_UNKNOWN_CRS', error.message);
  return error;
}

test('a file that is not a raster is described by its content', async (t) => {
  const folder = temporaryFolder(t);
  const cases: [content: string | Buffer, words: RegExp][] = [
    ['', /is empty/],
    [Buffer.from('89504e470d0a1a0a', 'hex'), /PNG/],
    [Buffer.from('504b0304', 'hex'), /zip archive.*unpack/],
    [Buffer.from('1f8b0800', 'hex'), /gzip.*unpack/],
    ['hello, this is text', /format is not known/],
    ['II', /format is not known/],
  ];
  for (const [content, words] of cases) {
    const path = join(folder, 'scene.tif');
    writeFileSync(path, content);
    const error = await refusal(path);
    assert.equal(error.code, 'TW_RASTER_NOT_TIFF');
    assert.match(error.message, words);
  }
  const error = await refusal(folder);
  assert.equal(error.code, 'TW_RASTER_NOT_TIFF');
  assert.match(error.message, /folder/);
});

test('formats that GDAL reads are refused by name without it', async (t) => {
  const folder = temporaryFolder(t);
  const { PATH } = process.env;
  atEnd(t, () => {
    process.env.PATH = PATH;
  });
  process.env.PATH = folder;
  for (const [content, name] of [
    [Buffer.from('0000000c6a5020200d0a870a', 'hex'), 'JPEG 2000'],
    [Buffer.from('ff4fff51002f0000', 'hex'), 'JPEG 2000'],
    [Buffer.from('0e031301000000', 'hex'), 'HDF4'],
    ['EHFA_HEADER_TAG\0....', 'Erdas Imagine (.img)'],
    ['CDF\x01', 'netCDF'],
  ] as const) {
    const path = join(folder, 'scene.tif');
    writeFileSync(path, content);
    const error = await refusal(path);
    assert.equal(error.code, 'TW_RASTER_NO_GDAL');
    assert.ok(error.message.includes(`is ${name}, which is read through GDAL`), error.message);
    assert.match(error.message, /apt-get install gdal-bin$/);
  }
});

test('a missing or forbidden file is unreadable, and the cause is kept', async (t) => {
  const folder = temporaryFolder(t);
  const missing = await refusal(join(folder, 'missing.tif'));
  assert.equal(missing.code, 'TW_RASTER_UNREADABLE');
  assert.equal((missing.cause as NodeJS.ErrnoException).code, 'ENOENT');
  const path = join(folder, 'locked.tif');
  copyFileSync(join(fixtures, 'none.tif'), path);
  chmodSync(path, 0);
  if (process.getuid?.() !== 0) assert.equal((await refusal(path)).code, 'TW_RASTER_UNREADABLE');
});

test('a TIFF truncated at any byte is refused, with the reason', async (t) => {
  const folder = temporaryFolder(t);
  for (const name of ['lzw2-uint16', 'none', 'bigtiff', 'deflate-big-int16']) {
    const path = join(folder, `${name}.tif`);
    const { length } = readFileSync(join(fixtures, `${name}.tif`));
    for (let part = 1; part < 12; part++) {
      copyFileSync(join(fixtures, `${name}.tif`), path);
      truncateSync(path, Math.floor((length * part) / 12));
      const error = await refusal(path);
      assert.equal(error.code, 'TW_RASTER_TRUNCATED', error.message);
    }
  }
});

test('a field of small numbers takes no multiple of its bytes in memory', async (t) => {
  const path = join(temporaryFolder(t), 'scene.tif');
  const bytes = Buffer.alloc(26);
  bytes.write('49492a0008000000', 'hex');
  // One field: 60 million widths, each in a byte.
  for (const [offset, value] of [
    [8, 1],
    [10, 256],
    [12, 1],
  ] as const)
    bytes.writeUInt16LE(value, offset);
  bytes.writeUInt32LE(60e6, 14);
  bytes.writeUInt32LE(26, 18);
  writeFileSync(path, bytes);
  truncateSync(path, 61e6);
  const { code, message } = await refusal(path);
  assert.equal(code, 'TW_RASTER_CORRUPT');
  assert.match(message, /tag 256 has 60000000 numbers/);
});

test('a block that changed on disk is named', async (t) => {
  const path = join(temporaryFolder(t), 'a.tif');
  const bytes = encodeCog(image('uint16', 100, 100));
  writeFileSync(path, bytes);
  const { blocks } = await openRaster(path);
  assert.ok(blocks.reader === 'tiff');
  const start = blocks.offsets[0]!;
  bytes.fill(0xff, start + 20, start + 60);
  writeFileSync(path, bytes);
  const error = await refusal(path);
  assert.equal(error.code, 'TW_RASTER_CORRUPT');
  assert.match(error.message, /block 0/);
});

test('a block that decompresses to more than its pixels is refused', async (t) => {
  const path = join(temporaryFolder(t), 'bomb.tif');
  const bytes = encodeCog(image('uint8', 16, 16));
  writeFileSync(path, bytes);
  const { blocks } = await openRaster(path);
  assert.ok(blocks.reader === 'tiff');
  const bomb = deflateSync(Buffer.alloc(1 << 24));
  const offset = blocks.offsets[0]!;
  // The block is the last thing in the file: replace it, and its byte count in the directory.
  const out = Buffer.concat([bytes.subarray(0, offset), bomb]);
  const at = bytes.indexOf(Buffer.from([0x45, 0x01, 4, 0, 1, 0, 0, 0])) + 8;
  out.writeUInt32LE(bomb.length, at);
  writeFileSync(path, out);
  assert.equal((await refusal(path)).code, 'TW_RASTER_CORRUPT');
});

test('unusable kinds of TIFF are refused by name', async (t) => {
  const path = join(temporaryFolder(t), 'a.tif');
  const original = encodeCog(image('uint16', 16, 16));
  const patch = (tag: number, value: number) => {
    const bytes = Buffer.from(original);
    for (let at = 10; at < bytes.length; at += 12) {
      if (bytes.readUInt16LE(at) !== tag) continue;
      bytes.writeUInt32LE(value, at + 8);
      break;
    }
    writeFileSync(path, bytes);
  };
  for (const [tag, value, words] of [
    [258, 1, /1-bit/],
    [258, 12, /12-bit/],
    [339, 3, /16-bit floating/],
    [339, 5, /complex/],
    [259, 34925, /LZMA/],
    [259, 999, /codec 999/],
    [322, 1 << 20, /bytes|GiB|blocks/],
    [256, 1 << 30, /size/],
  ] as const) {
    patch(tag, value);
    const error = await refusal(path);
    assert.ok(['TW_RASTER_UNSUPPORTED', 'TW_RASTER_CORRUPT'].includes(error.code), error.message);
    assert.match(error.message, words);
  }
});

test('a damaged file is either read or refused', async (t) => {
  const folder = temporaryFolder(t);
  const names = ['lzw2-uint16', 'lzw2-uint8', 'deflate-big-float32', 'bigtiff', 'none-big-tiled', 'tags'];
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...names),
      fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }), fc.boolean()), {
        minLength: 1,
        maxLength: 8,
      }),
      async (name, damages) => {
        const bytes = readFileSync(join(fixtures, `${name}.tif`));
        // Half of the damage hits the directory, which is at the start or the end of these files.
        for (const [where, value, anywhere] of damages) {
          const edge = where % 2 === 0 ? where % 400 : bytes.length - 1 - (where % 400);
          bytes[anywhere ? where % bytes.length : edge] = value;
        }
        const path = join(folder, 'damaged.tif');
        writeFileSync(path, bytes);
        await readRaster(path).catch((error) => {
          if (!(error instanceof TilewrightError)) throw error;
        });
      },
    ),
    { seed: 42, numRuns: 400 },
  );
});
