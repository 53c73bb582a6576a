import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { after, before, describe, it } from 'node:test';
import {
  SAFE_EPSG,
  SAFE_ORIGIN,
  type SafeOptions,
  type SafeProductFiles,
  writeSafe,
} from '../../data-samples/index.js';
import { readRaster } from '../../src/raster/index.js';

const SIZE = { width: 240, height: 180 };

describe('a made-up SAFE product', () => {
  let folder: string;
  let before4: SafeProductFiles;
  let after4: SafeProductFiles;
  let level1: SafeProductFiles;
  const write = (options: SafeOptions) => writeSafe(folder, { size: SIZE, cloudShare: 0.3, ...options });
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'samples-'));
    before4 = await write({ level: 'L2A', baseline: '02.14' });
    after4 = await write({ level: 'L2A', baseline: '04.00' });
    level1 = await write({ level: 'L1C', baseline: '05.09' });
  });
  after(() => rm(folder, { recursive: true }));

  const pixels = async (path: string | undefined) => (await readRaster(path ?? '')).bands;

  it('has every band at its native size, in the corner that its metadata states', async () => {
    const tile = await readFile(level1.tileMetadataPath, 'utf8');
    for (const [size, bands] of Object.entries({
      10: ['B02', 'B08'],
      20: ['B05', 'B8A', 'B12'],
      60: ['B01', 'B10'],
    })) {
      for (const band of bands) {
        const { header } = await readRaster(level1.bandPaths[band] ?? '');
        const { originX, originY, xx, yy } = header.transform;
        assert.deepEqual(
          [originX, originY, xx, yy],
          [SAFE_ORIGIN.x, SAFE_ORIGIN.y, Number(size), -Number(size)],
        );
        assert.deepEqual([header.width, header.height], [2400 / Number(size), 1800 / Number(size)]);
        assert.equal(header.crs.epsg, SAFE_EPSG);
      }
      assert.match(tile, new RegExp(`Size resolution="${size}">\\s*<NROWS>${1800 / Number(size)}<`));
    }
    assert.equal(Object.keys(level1.bandPaths).length, 14);
    assert.equal(Object.keys(after4.bandPaths).length, 13);
  });

  it('lists its files in its metadata', async () => {
    for (const { path, metadataPath, bandPaths } of [level1, after4]) {
      const xml = await readFile(metadataPath, 'utf8');
      for (const [band, file] of Object.entries(bandPaths)) {
        const name = relative(path, file).replace(/\.jp2$/, '');
        assert.equal(xml.includes(`<IMAGE_FILE>${name}</IMAGE_FILE>`), band !== 'CLASSI', band);
      }
      assert.ok(xml.includes(`<PRODUCT_URI>${basename(path)}</PRODUCT_URI>`));
    }
  });

  it('has the same reflectance in both baselines, shifted by 1000 in the later', async () => {
    assert.deepEqual([before4.addOffset, after4.addOffset], [0, -1000]);
    assert.doesNotMatch(await readFile(before4.metadataPath, 'utf8'), /ADD_OFFSET/);
    const [early] = await pixels(before4.bandPaths.B04);
    const [late] = await pixels(after4.bandPaths.B04);
    let data = 0;
    for (let i = 0; i < (early?.length ?? 0); i++) {
      assert.equal(late?.[i], early?.[i] === 0 ? 0 : (early?.[i] ?? NaN) + 1000);
      if (early?.[i] !== 0) data++;
    }
    assert.ok(data > 0.7 * SIZE.width * SIZE.height && data < SIZE.width * SIZE.height);
  });

  it('ends all bands and masks at the same edge of the orbit', async () => {
    const [fine] = await pixels(after4.bandPaths.B02);
    const [classes] = await pixels(after4.bandPaths.SCL);
    const seen = new Set(classes);
    for (const code of [0, 4, 8, 9]) assert.ok(seen.has(code), `class ${code}`);
    for (let i = 0; i < (classes?.length ?? 0); i++) {
      const column = i % (SIZE.width / 2);
      const row = (i - column) / (SIZE.width / 2);
      assert.equal(classes?.[i] === 0, fine?.[2 * row * SIZE.width + 2 * column] === 0);
    }
    const [opaque, cirrus, snow] = await pixels(level1.bandPaths.CLASSI);
    assert.deepEqual([...new Set([...(opaque ?? []), ...(cirrus ?? []), ...(snow ?? [])])].sort(), [0, 1]);
  });

  it('is made of whole pixels of 60 m', async () => {
    await assert.rejects(writeSafe(folder, { size: { width: 100, height: 60 } }), /multiple of 6/);
  });
});
