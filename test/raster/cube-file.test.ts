/** Files of many bands whose blocks lie place by place. */
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { readBlock, readMaskBlock, readTileGeoTiff } from '../../src/imagery/tile-geotiff.js';
import { CUBE_BLOCK_SIDE, CubeFile, encodeCube, readRaster } from '../../src/raster/index.js';
import { combineCrc32 } from '../../src/raster/write/tiff.js';
import { imageFile } from '../support/image-file.js';
import { gdal, gdalPixels, needsGdal, temporaryFolder } from './gdal.js';
import { assertSamePixels, pixels, random } from './images.js';

const PLACE = {
  epsg: 4326,
  transform: { originX: 10, originY: 50, pixelWidth: 0.001, pixelHeight: 0.001 },
};

test('the CRC of two pieces is computed from their CRCs', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ maxLength: 300 }), (a, b) => {
      assert.equal(combineCrc32(crc32(a), crc32(b), b.length), crc32(Buffer.concat([a, b])));
    }),
    { seed: 27 },
  );
  // Lengths of more than 32 bits: zeros, twice as many each time.
  let zeros = crc32(Buffer.alloc(1));
  for (let length = 1; length < 2 ** 32; length *= 2) zeros = combineCrc32(zeros, zeros, length);
  const twice = combineCrc32(zeros, zeros, 2 ** 32);
  const step = combineCrc32(crc32('a'), zeros, 2 ** 32);
  assert.equal(combineCrc32(crc32('a'), twice, 2 ** 33), combineCrc32(step, zeros, 2 ** 32));
});

const cubes = fc.record({
  width: fc.integer({ min: 1, max: 150 }),
  height: fc.integer({ min: 1, max: 150 }),
  count: fc.integer({ min: 1, max: 5 }),
  dataType: fc.constantFrom('uint8', 'int16', 'uint16', 'int32', 'float32', 'float64'),
  nodata: fc.option(fc.constantFrom(0, 7, 255), { nil: undefined }),
  masks: fc.constantFrom('none', 'of all bands', 'of each band'),
  isCompressed: fc.boolean(),
  seed: fc.nat(),
});

test('every reader returns the pixels of a cube, whichever way it is written', async (t) => {
  const folder = temporaryFolder(t);
  let sparse = 0;
  await fc.assert(
    fc.asyncProperty(
      cubes,
      async ({ width, height, count, dataType, nodata, masks: kind, isCompressed, seed }) => {
        const next = random(seed);
        const empty = nodata ?? (dataType.startsWith('float') ? NaN : 0);
        // Empty corners, so that blocks are left out.
        const [right, bottom] = [next() * 1.5 * width, next() * 1.5 * height];
        const bands = Array.from({ length: count }, (_, band) =>
          pixels(dataType, width, height, seed + band).map((value, i) =>
            i % width > right || i / width > bottom ? empty : value,
          ),
        );
        const masked = kind === 'none' ? [] : kind === 'of all bands' ? bands.slice(0, 1) : bands;
        const masks = masked.map((band) => Uint8Array.from(band, () => (next() < 0.8 ? 1 : 0)));
        const image = { width, height, dataType, ...PLACE, nodata, isCompressed };
        const bytes = encodeCube(image, bands, masks);
        const path = join(folder, 'cube.tif');
        writeFileSync(path, bytes);

        const streamed = join(folder, `streamed-${seed}-${sparse++}.tif`);
        const file = new CubeFile(streamed);
        file.begin({ ...image, bands: count, masks: masks.length });
        for (let row = 0; row < height; row += CUBE_BLOCK_SIDE)
          file.addRows(bands.map((band) => band.subarray(row * width, (row + CUBE_BLOCK_SIDE) * width)));
        const record = file.finish(masks);
        file.close();
        assert.ok(bytes.equals(readFileSync(streamed)));
        assert.deepEqual(record, { bytes: bytes.length, crc32: crc32(bytes) });

        const found = await readRaster(path);
        for (const [i, band] of bands.entries()) {
          assertSamePixels(found.bands[i]!, band);
          const mask = masks[masks.length === 1 ? 0 : i];
          const isHole = (value: number) => Number.isNaN(value) || (!mask && value === nodata);
          const valid = Array.from(band, (value, at) => Number(!isHole(value) && mask?.[at] !== 0));
          assert.deepEqual(Array.from(found.valid[i] ?? valid.map(() => 1)), valid);
        }

        const stored = openSync(path, 'r');
        try {
          const cog = readTileGeoTiff(stored, imageFile(path));
          const [level] = cog.levels;
          for (const [b, band] of bands.entries())
            for (let block = 0; block < level!.perBand; block++) {
              const left = (block % level!.across) * level!.blockWidth;
              const top = Math.floor(block / level!.across) * CUBE_BLOCK_SIDE;
              const [first, rows] = [Math.floor(next() * 3), Math.min(CUBE_BLOCK_SIDE, height - top)];
              const got = readBlock(
                stored,
                cog,
                { level: 0, band: b, block },
                rows,
                Math.min(first, rows - 1),
              );
              for (let y = Math.min(first, rows - 1); y < rows; y++)
                for (let x = 0; x < level!.blockWidth && left + x < width; x++)
                  assert.equal(got[y * level!.blockWidth + x], band[(top + y) * width + left + x]);
              const mask = masks[masks.length === 1 ? 0 : b];
              if (!mask) continue;
              const bits = readMaskBlock(stored, cog, { level: 0, band: b, block }, rows);
              for (let y = 0; y < rows; y++)
                for (let x = 0; x < level!.blockWidth && left + x < width; x++)
                  assert.equal(bits[y * level!.blockWidth + x], mask[(top + y) * width + left + x]);
            }
        } finally {
          closeSync(stored);
        }
      },
    ),
    { seed: 27, numRuns: 60 },
  );
});

for (const isCompressed of [false, true])
  test(
    `GDAL reads a ${isCompressed ? 'compressed' : 'plain'} cube with missing blocks, and finds its wavelengths`,
    needsGdal,
    (t) => {
      const path = join(temporaryFolder(t), 'cube.tif');
      const [width, height] = [200, 130];
      const bands = [1, 2, 3].map((seed) =>
        pixels('int16', width, height, seed).map((value, i) => (i % width < 70 ? -999 : value)),
      );
      const bandTags = bands.map((_, i) => ({ description: `b${i}`, wavelength: 500 + i, fwhm: 6.5 }));
      const image = { width, height, dataType: 'int16' as const, ...PLACE, nodata: -999, bandTags };
      writeFileSync(path, encodeCube({ ...image, isCompressed }, bands));
      for (const [i, band] of gdalPixels(path, 'int16').entries()) assertSamePixels(band, bands[i]!);
      const info = JSON.parse(gdal('gdalinfo', '-json', path));
      assert.equal(info.bands[2].metadata[''].wavelength, '502');
      assert.deepEqual(info.bands[0].block, [64, 64]);
      assert.equal(info.metadata.IMAGE_STRUCTURE.INTERLEAVE, 'BAND');
    },
  );

test('a spectrum is contiguous in the file', () => {
  const [width, height, count] = [130, 70, 6];
  const bands = Array.from({ length: count }, (_, i) => pixels('int16', width, height, i + 1));
  const image = { width, height, dataType: 'int16' as const, ...PLACE, isCompressed: false };
  const bytes = encodeCube(image, bands);
  const block = CUBE_BLOCK_SIDE * CUBE_BLOCK_SIDE * 2;
  // Six places, six bands: the blocks precede those of the overview of 33 x 18 pixels, place by place.
  const start = bytes.length - 6 * 6 * block - 6 * 48 * CUBE_BLOCK_SIDE * 2;
  for (let band = 0; band < count; band++)
    assert.equal(
      bytes.readInt16LE(start + (1 * count + band) * block + (3 * CUBE_BLOCK_SIDE + 5) * 2),
      bands[band]![3 * width + CUBE_BLOCK_SIDE + 5],
    );
});
