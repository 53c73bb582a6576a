/** The reader of tile files with written pixels, and with files that are not tiles. */

import assert from 'node:assert/strict';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type Level,
  readBlock,
  readMaskBlock,
  readTileGeoTiff,
  withOpenTile,
} from '../../src/imagery/tile-geotiff.js';
import { BlockCache } from '../../src/imagery/tile-reader.js';
import {
  allocatePixels,
  DATA_TYPES,
  encodeCog,
  type ImageFile,
  type PixelArray,
} from '../../src/raster/index.js';
import { imageFile } from '../support/image-file.js';
import { tempFolder } from '../support/temp.js';

test('blocks of all types and levels have the written values, even if only some rows are read', async (t) => {
  const folder = await tempFolder(t);
  const [width, height] = [700, 530];
  for (const dataType of DATA_TYPES) {
    const bands = [1, 2].map((band) => {
      const pixels = allocatePixels(dataType, width * height);
      for (let i = 0; i < pixels.length; i++) pixels[i] = ((i * 7919 * band) % 251) - (i % 3);
      return pixels;
    });
    const path = join(folder, `${dataType}.tif`);
    const transform = { originX: 15, originY: 48, pixelWidth: 0.001, pixelHeight: 0.001 };
    await writeFile(
      path,
      encodeCog({ width, height, dataType, bands, transform, epsg: 4326, overviews: 'nearest' }),
    );
    const file = openSync(path, 'r');
    try {
      const cog = readTileGeoTiff(file, imageFile(path));
      assert.equal(cog.dataType, dataType);
      assert.deepEqual(
        cog.levels.map((level) => [level.width, level.height]),
        [
          [700, 530],
          [350, 265],
          [44, 34],
        ],
      );
      for (const [level, { blockWidth, blockHeight, across, perBand }] of cog.levels.entries()) {
        const step = [1, 2, 16][level]!;
        for (let block = 0; block < perBand; block++) {
          for (const [rows, first] of [
            [blockHeight, 0],
            [7, 0],
            [30, 29],
          ]) {
            const band = block % 2;
            const pixels = readBlock(file, cog, { level, band, block }, rows, first);
            const top = Math.floor(block / across) * blockHeight;
            const left = (block % across) * blockWidth;
            let wrong = 0;
            for (let row = first; row < Math.min(rows, cog.levels[level].height - top); row++) {
              for (let column = 0; column < Math.min(blockWidth, cog.levels[level].width - left); column++) {
                const at = (top + row) * step * width + (left + column) * step;
                if (pixels[row * blockWidth + column] !== bands[band][at]) wrong++;
              }
            }
            assert.equal(wrong, 0, `${dataType}, level ${level}, block ${block}, rows ${first} to ${rows}`);
          }
        }
      }
    } finally {
      closeSync(file);
    }
  }
});

test('the mask of a file is read with its overviews', async (t) => {
  const path = join(await tempFolder(t), 'masked.tif');
  const [width, height] = [700, 530];
  const mask = Uint8Array.from({ length: width * height }, (_, i) => (i % 7 === 3 || i % 700 > 600 ? 0 : 1));
  const transform = { originX: 15, originY: 48, pixelWidth: 0.001, pixelHeight: 0.001 };
  const image = { width, height, dataType: 'uint8' as const, bands: [mask, mask], epsg: 4326, transform };
  await writeFile(path, encodeCog({ ...image, masks: [mask], overviews: 'nearest' }));
  withOpenTile(imageFile(path), (file, cog) => {
    assert.deepEqual([cog.levels.length, cog.masks.length, cog.bands], [3, 3, 2]);
    for (const [level, { blockHeight, perBand }] of cog.levels.entries())
      for (let block = 0; block < perBand; block++)
        for (const rows of [blockHeight, 30])
          assert.deepEqual(
            readMaskBlock(file, cog, { level, band: 1, block }, rows),
            // Blocks differ beyond the image, where the band keeps its earlier content.
            insideOf(readBlock(file, cog, { level, band: 1, block }, rows), cog.levels[level], block, rows),
          );
  });
});

/** A block with zeros beyond the image. */
function insideOf(
  pixels: PixelArray,
  { width, height, blockWidth, blockHeight }: Level,
  block: number,
  rows: number,
): Uint8Array {
  const across = Math.ceil(width / blockWidth);
  const right = Math.min(blockWidth, width - (block % across) * blockWidth);
  const bottom = Math.min(rows, height - Math.floor(block / across) * blockHeight);
  return Uint8Array.from(pixels, (value, i) =>
    i % blockWidth < right && Math.floor(i / blockWidth) < bottom ? value : 0,
  );
}

test('files with changed bytes are read or refused with the error code', async (t) => {
  const folder = await tempFolder(t);
  const transform = { originX: 15, originY: 48, pixelWidth: 0.001, pixelHeight: 0.001 };
  const bands = [Uint16Array.from({ length: 600 * 40 }, (_, i) => i)];
  const image = { width: 600, height: 40, dataType: 'uint16' as const, epsg: 4326 };
  const sound = encodeCog({ ...image, bands, transform, overviews: 'mean' });
  const path = join(folder, 'changed.tif');
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(700), fc.nat(255)), { minLength: 1, maxLength: 4 }),
      fc.option(fc.nat(sound.length)),
      async (changes, length) => {
        const bytes = Buffer.from(sound);
        for (const [at, value] of changes) bytes[at] = value;
        await writeFile(path, bytes.subarray(0, length ?? bytes.length));
        try {
          withOpenTile(imageFile(path), (file, cog) => {
            const [{ blockHeight }] = cog.levels;
            readBlock(file, cog, { level: 0, band: 0, block: 0 }, blockHeight);
          });
        } catch (error) {
          assert.equal((error as { code?: string }).code, 'TW_IMAGERY_TILE_FILE');
        }
      },
    ),
    { seed: 42, numRuns: 400 },
  );
});

test('a changed bit of the blocks of an image never changes the pixels that are read', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'changed.tif');
  const transform = { originX: 15, originY: 48, pixelWidth: 0.001, pixelHeight: 0.001 };
  const place = { width: 300, height: 280, epsg: 4326, transform, overviews: 'mean' } as const;
  const values = Uint16Array.from({ length: 300 * 280 }, (_, i) => (i * i) % 4099);
  const mask = Uint8Array.from(values, (value) => Number(value % 9 > 0));
  const first = encodeCog({ ...place, dataType: 'uint16', bands: [values, values.toReversed()] });
  const second = encodeCog({ ...place, dataType: 'uint8', bands: [mask], masks: [mask] });
  // Two images side by side, as in a tile file.
  const sound = Buffer.concat([first, second]);
  const images = [
    { path, start: 0, bytes: first.length },
    { path, start: first.length, bytes: second.length },
  ];
  const readAll = (image: ImageFile) =>
    withOpenTile(image, (file, cog) => {
      const [{ perBand, blockHeight }] = cog.levels;
      return Array.from({ length: perBand * cog.bands }, (_, i) => {
        const at = { level: 0, band: Math.floor(i / perBand), block: i % perBand };
        const pixels = readBlock(file, cog, at, blockHeight).slice();
        return [pixels, cog.maskCount > 0 ? readMaskBlock(file, cog, at, blockHeight) : []];
      });
    });
  await writeFile(path, sound);
  const written = images.map(readAll);
  const tally = { refused: 0, same: 0 };
  const blocksAt = images.map((image) =>
    withOpenTile(image, (_, { levels }) => Math.min(...levels.flatMap((level) => [...level.offsets]))),
  );
  for (const [n, image] of images.entries())
    for (let i = 0; i < 150; i++) {
      const changed = Buffer.from(sound);
      const length = image.start + image.bytes - blocksAt[n]!;
      changed[blocksAt[n]! + ((i * 7919) % length)]! ^= 1 << (i % 8);
      writeFileSync(path, changed);
      try {
        assert.deepEqual(readAll(image), written[n]);
        tally.same++;
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'TW_IMAGERY_TILE_FILE');
        tally.refused++;
      }
    }
  assert.ok(tally.refused > 200, JSON.stringify(tally));
});

test('an image is refused whose blocks lie in the next image of the file, or have only a position or a size', async (t) => {
  const path = join(await tempFolder(t), 'two.tif');
  const transform = { originX: 15, originY: 48, pixelWidth: 0.001, pixelHeight: 0.001 };
  const bands = [Uint8Array.from({ length: 64 * 64 }, (_, i) => (i * 7) % 251)];
  const place = { width: 64, height: 64, epsg: 4326, transform, overviews: 'mean' } as const;
  const image = encodeCog({ ...place, dataType: 'uint8', bands });
  await writeFile(path, Buffer.concat([image, image]));
  const range = { path, start: 0, bytes: image.length };
  const offset = withOpenTile(range, (_, { levels }) => levels[0]!.offsets[0]!);
  const size = withOpenTile(range, (_, { levels }) => levels[0]!.byteCounts[0]!);
  const stored = Buffer.alloc(4);
  stored.writeUInt32LE(offset);
  for (const [field, value, message] of [
    [offset, offset + image.length, /lies beyond its end/],
    [size, size + image.length, /lies beyond its end/],
    [offset, 0, /is listed in part/],
    [size, 0, /is listed in part/],
  ] as const) {
    const changed = Buffer.concat([image, image]);
    stored.writeUInt32LE(field);
    const at = changed.indexOf(stored);
    changed.writeUInt32LE(value, at);
    await writeFile(path, changed);
    assert.throws(() => withOpenTile(range, () => undefined), {
      code: 'TW_IMAGERY_TILE_FILE',
      message,
    });
  }
});

test('the cache makes a value once, forgets failures, and keeps to its limit', async () => {
  let made = 0;
  const cache = new BlockCache<number>(10, (bytes) => bytes);
  const get = (key: string, bytes: number) =>
    cache.get(key, async () => {
      made++;
      return bytes;
    });
  assert.deepEqual(await Promise.all([get('a', 4), get('a', 4)]), [4, 4]);
  assert.equal(made, 1);
  await get('b', 4);
  await get('a', 4);
  await get('c', 4);
  assert.equal(made, 3);
  await get('a', 4);
  assert.equal(made, 3, 'a was used after b');
  await get('b', 4);
  assert.equal(made, 4, 'b had to go');
  await assert.rejects(
    cache.get('d', () => Promise.reject(new Error('no'))),
    /no/,
  );
  assert.equal(await get('d', 1), 1);
  await get('large', 100);
  await get('large', 100);
  assert.equal(made, 7, 'what is larger than the cache is not kept');
});
