/**
 * Damaged blocks of every codec: each is refused, in bounded time and memory. Files are those of `make.py` in the fixtures, and of these
 * some with a changed block.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { TilewrightError } from '../../src/errors.js';
import { jpegFrame } from '../../src/raster/codecs/jpeg.js';
import { decodePackbits } from '../../src/raster/codecs/lzw.js';
import { openRaster, readRaster } from '../../src/raster/index.js';
import { fixtures, gdal, gdalPixels, needsGdal, temporaryFolder } from './gdal.js';

const STRIP_BYTE_COUNTS = 279;
const TILE_BYTE_COUNTS = 325;

/** Writes a fixture with another first block in place of its own, at the end of the file. */
async function withBlock(folder: string, name: string, change: (block: Buffer) => Buffer) {
  const original = join(fixtures, `${name}.tif`);
  const { blocks } = await openRaster(original);
  assert.ok(blocks.reader === 'tiff');
  const bytes = readFileSync(original);
  const start = blocks.offsets[0]!;
  const block = change(Buffer.from(bytes.subarray(start, start + blocks.byteCounts[0]!)));
  setFirst(bytes, [STRIP_BYTE_COUNTS, TILE_BYTE_COUNTS], block.length);
  setFirst(bytes, [STRIP_BYTE_COUNTS - 6, TILE_BYTE_COUNTS - 1], bytes.length);
  const path = join(folder, `${name}-changed.tif`);
  writeFileSync(path, Buffer.concat([bytes, block]));
  return path;
}

/** Sets the first number of the tag that the directory of a little-endian TIFF has. */
function setFirst(bytes: Buffer, tags: number[], value: number): void {
  const directory = bytes.readUInt32LE(4);
  for (let i = 0; i < bytes.readUInt16LE(directory); i++) {
    const entry = directory + 2 + 12 * i;
    if (!tags.includes(bytes.readUInt16LE(entry))) continue;
    const size = bytes.readUInt16LE(entry + 2) === 3 ? 2 : 4;
    const isInline = size * bytes.readUInt32LE(entry + 4) <= 4;
    bytes.writeUIntLE(value, isInline ? entry + 8 : bytes.readUInt32LE(entry + 8), size);
    return;
  }
  assert.fail(`none of the tags ${tags}`);
}

async function assertCorrupt(path: string, cause: RegExp): Promise<void> {
  await assert.rejects(readRaster(path), (error: unknown) => {
    assert.ok(error instanceof TilewrightError, String(error));
    assert.equal(error.code, 'TW_RASTER_CORRUPT');
    assert.match(`${error.message} ${(error.cause as Error | undefined)?.message}`, cause);
    return true;
  });
}

/** A frame of Zstandard (RFC 8878) with one block of zeros. */
function zstdFrame(size: number): Buffer {
  const frame = Buffer.alloc(13);
  frame.writeUInt32LE(0xfd2fb528, 0);
  // The size of the content in four bytes; then the only block: a repeated byte.
  frame[4] = 0xa0;
  frame.writeUInt32LE(size, 5);
  frame.writeUIntLE((size << 3) | 0b011, 9, 3);
  return frame;
}

test('Zstandard: data other than exactly the pixels of the block is refused', async (t) => {
  const folder = temporaryFolder(t);
  const original = await readRaster(join(fixtures, 'zstd.tif'));
  assert.ok(original.header.blocks.reader === 'tiff');
  const { width, height } = original.header.blocks;
  const pixels = width * height * 2 * 2;
  const changed = (change: (block: Buffer) => Buffer) => withBlock(folder, 'zstd', change);
  const { bands } = await readRaster(await changed(() => zstdFrame(pixels)));
  assert.equal(bands[0]![0], 0);
  assert.equal(bands[0]![width], original.bands[0]![width]);
  await assertCorrupt(await changed((block) => block.subarray(0, block.length - 9)), /Zstandard/);
  await assertCorrupt(await changed((block) => block.fill(0x11, 0, 4)), /Zstandard/);
  await assertCorrupt(await changed((block) => block.fill(0xff, 4, 12)), /Zstandard/);
  await assertCorrupt(await changed((block) => Buffer.concat([block, Buffer.from('more')])), /Zstandard/);
  await assertCorrupt(await changed(() => zstdFrame(pixels + 1)), /Zstandard/);
  await assertCorrupt(await changed(() => zstdFrame(pixels - 1)), /holds \d+ bytes, \d+ are needed/);
  await assertCorrupt(await changed(() => Buffer.from([0])), /Zstandard/);
});

test('LERC: a truncated blob, or one of another size or type, is refused', async (t) => {
  const folder = temporaryFolder(t);
  await assertCorrupt(join(fixtures, 'corrupt/lerc-endless.tif'), /lerc/);
  const changed = (offset: number, value: number) =>
    withBlock(folder, 'lerc', (block) => {
      block.writeInt32LE(value, offset);
      return block;
    });
  await assertCorrupt(await changed(14, 2 ** 30), /pixels of 2 samples in place of/);
  await assertCorrupt(await changed(22, 2 ** 20), /of 1048576 samples/);
  await assertCorrupt(await changed(30, 0), /units of 0 pixels/);
  await assertCorrupt(await changed(34, 0), /blob of 0 bytes/);
  await assertCorrupt(await changed(38, 5), /blob of uint32/);
  await assertCorrupt(await changed(80, 0), /lerc-decode/);
});

test('LERC: NaN for masked pixels, and blobs with additional compression', async () => {
  for (const name of ['nan', 'deflate', 'zstd']) {
    const { bands } = await readRaster(join(fixtures, `corrupt/lerc-${name}.tif`));
    for (const [i, value] of bands[0]!.entries()) {
      const [row, column] = [Math.floor(i / 50), i % 50];
      const isMissing = name === 'nan' && row >= 3 && row < 9 && column >= 5 && column < 11;
      if (isMissing) assert.ok(Number.isNaN(value), `row ${row}, column ${column}`);
      else assert.ok(Math.abs(value - (column / 4 + row)) <= 0.01, `row ${row}, column ${column}`);
    }
  }
});

test('LERC: a blob for each band, with masks of their own, and alpha as a mask', async () => {
  for (const name of ['masks-lerc', 'masks-deflate', 'masks-zstd', 'alpha-some', 'alpha-all']) {
    const { bands, header } = await readRaster(join(fixtures, `lerc-${name}.tif`));
    const isAlpha = name.startsWith('alpha');
    for (const [band, values] of bands.entries())
      for (const [i, value] of values.entries()) {
        const [row, column] = [Math.floor(i / 20), i % 20];
        const opaque = name !== 'alpha-some' || (row + column) % 3 > 0;
        const colour = band < 3 ? 50 * band + row + Math.floor(column / 4) : 255;
        const isEmpty = name === 'masks-lerc' && band === 0 && row >= 6;
        const isMissing = isEmpty || (band < header.bands - 1 && (row + column) % (band + 2) === 0);
        const number = isMissing ? NaN : 100 * band + row + column / 4;
        assert.equal(
          value,
          isAlpha ? (opaque ? colour : 0) : number,
          `${name}: band ${band}, row ${row}, column ${column}`,
        );
      }
  }
});

test('LERC: too many blobs, or one that differs from the others, are refused', async (t) => {
  const folder = temporaryFolder(t);
  const changed = (change: (block: Buffer, second: number) => Buffer) =>
    withBlock(folder, 'lerc-masks-lerc', (block) => change(block, block.readInt32LE(34)));
  await assertCorrupt(
    await changed((block, second) => Buffer.concat([block, block.subarray(second)])),
    /more than 3 LERC blobs/,
  );
  await assertCorrupt(
    await changed((block, second) => block.subarray(0, second)),
    /of 1 samples in place of/,
  );
  await assertCorrupt(
    await changed((block) => block.subarray(0, block.length - 1)),
    /LERC blob of \d+ bytes in/,
  );
  await assertCorrupt(
    await changed((block) => Buffer.concat([block, Buffer.alloc(8)])),
    /more than 3 LERC blobs/,
  );
  const second = (offset: number, value: number) =>
    changed((block, at) => {
      block.writeInt32LE(value, at + offset);
      return block;
    });
  await assertCorrupt(await second(14, 7), /20 x 7 pixels/);
  await assertCorrupt(await second(18, 2 ** 30), /1073741824 x 6/);
  await assertCorrupt(await second(22, 2), /of 2 samples/);
  await assertCorrupt(await second(38, 7), /blob of float64/);
});

test(
  'a byte count of 0 with an offset: one strip is estimated as by GDAL, others are refused',
  needsGdal,
  async (t) => {
    const folder = temporaryFolder(t);
    for (const [i, options] of [
      [],
      ...['DEFLATE', 'LZW', 'PACKBITS', 'ZSTD', 'LERC'].map((name) => [`COMPRESS=${name}`]),
      ['ENDIANNESS=LITTLE', 'COMPRESS=DEFLATE', 'PREDICTOR=2'],
    ].entries()) {
      const path = join(folder, `${i}.tif`);
      const co = [...options, 'BLOCKYSIZE=1000', 'INTERLEAVE=PIXEL'].flatMap((option) => ['-co', option]);
      gdal('gdal_translate', '-q', ...co, join(fixtures, 'none.tif'), path);
      const { header, bands } = await readRaster(path);
      const bytes = readFileSync(path);
      setFirst(bytes, [STRIP_BYTE_COUNTS], 0);
      writeFileSync(path, bytes);
      assert.deepEqual((await readRaster(path)).bands, bands, options.join());
      assert.deepEqual(gdalPixels(path, header.dataType), bands, options.join());
      // Without an offset the strip was never written.
      setFirst(bytes, [STRIP_BYTE_COUNTS - 6], 0);
      writeFileSync(path, bytes);
      assert.ok((await readRaster(path)).bands.every((band) => band.every((value) => value === 0)));
    }
    for (const options of [
      ['BLOCKYSIZE=4'],
      ['BLOCKYSIZE=1000', 'INTERLEAVE=BAND'],
      ['TILED=YES', 'BLOCKXSIZE=16', 'BLOCKYSIZE=16', 'COMPRESS=LZW'],
      ['TILED=YES', 'BLOCKXSIZE=512', 'BLOCKYSIZE=512'],
    ]) {
      const path = join(folder, 'several.tif');
      gdal(
        'gdal_translate',
        '-q',
        ...options.flatMap((option) => ['-co', option]),
        join(fixtures, 'none.tif'),
        path,
      );
      const bytes = readFileSync(path);
      setFirst(bytes, [STRIP_BYTE_COUNTS, TILE_BYTE_COUNTS], 0);
      writeFileSync(path, bytes);
      await assertCorrupt(path, /block 0 begins at byte \d+ and has 0 bytes/);
    }
  },
);

test('JPEG: an image of another size, without an end, or with very many scans is refused', async (t) => {
  const folder = temporaryFolder(t);
  const changed = (change: (block: Buffer) => Buffer) => withBlock(folder, 'jpeg', change);
  const frameAt = (block: Buffer) => block.findIndex((byte, i) => byte === 0xff && block[i + 1] === 0xc0);
  const scanAt = (block: Buffer) => block.findIndex((byte, i) => byte === 0xff && block[i + 1] === 0xda);
  await readRaster(await changed((block) => block));
  const wide = (block: Buffer) => {
    block.writeUInt16BE(65_535, frameAt(block) + 7);
    return block;
  };
  await assertCorrupt(await changed(wide), /65535 x \d+ pixels/);
  await assertCorrupt(await changed((block) => block.subarray(0, block.length - 2)), /has no end/);
  const twice = (block: Buffer) =>
    Buffer.concat([block.subarray(0, scanAt(block)), block.subarray(frameAt(block))]);
  await assertCorrupt(await changed(twice), /two JPEG frames/);
  const scans = (block: Buffer) => {
    const [start, end] = [scanAt(block), block.length - 2];
    const scan = Array.from({ length: 101 }, () => block.subarray(start, end));
    return Buffer.concat([block.subarray(0, start), ...scan, block.subarray(end)]);
  };
  await assertCorrupt(await changed(scans), /more than 100 JPEG scans/);
});

test('JPEG: tables that extend into the next segment are refused', () => {
  const stream = (...segments: string[]) => Buffer.from(`ffd8${segments.join('')}ffd9`, 'hex');
  const frame = 'ffc0000b080008000801011100';
  assert.throws(() => jpegFrame(stream(`${frame}`)), /no JPEG frame/);
  assert.throws(() => jpegFrame(stream('ffc400050001ff')), /tables of a wrong length/);
  assert.throws(() => jpegFrame(stream('ffdb000400ff')), /tables of a wrong length/);
  assert.throws(() => jpegFrame(stream('ffdb0001')), /segment ends/);
  assert.throws(() => jpegFrame(stream('ffc000080800080008ff')), /frame of a wrong length/);
  assert.deepEqual(jpegFrame(stream(`${frame}`, 'ffda0008010100003f00', '12ff0034')), {
    width: 8,
    height: 8,
    samples: 1,
  });
});

test('PackBits: runs end with the block, and a block that is too short is refused', async (t) => {
  const folder = temporaryFolder(t);
  await assertCorrupt(
    await withBlock(folder, 'packbits', (block) => block.subarray(0, block.length >> 1)),
    /holds \d+ bytes, \d+ are needed/,
  );
  const output = new Uint8Array(8);
  // Technical note 1023 of Apple, with the byte that has no meaning.
  const packed = Uint8Array.of(0xfe, 0xaa, 0x80, 0x02, 0x80, 0x00, 0x2a, 0xfd, 0xaa, 0x03, 1, 2, 3, 4);
  assert.equal(decodePackbits(packed, output), 8);
  assert.deepEqual([...output], [0xaa, 0xaa, 0xaa, 0x80, 0x00, 0x2a, 0xaa, 0xaa]);
  assert.equal(decodePackbits(Uint8Array.of(0x02, 1), output), 1);
  assert.equal(decodePackbits(Uint8Array.of(0xfe), output), 0);
});
