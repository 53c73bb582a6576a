/** Differences between neighbours, in a tile that is wider than its blocks. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { SpectrumFile } from '../../src/hyperspectral/blocks.js';
import { bandStatistics, ExactSums, tileSums } from '../../src/hyperspectral/sums.js';
import { CUBE_BLOCK_SIDE, encodeCube } from '../../src/raster/index.js';
import { random } from '../raster/images.js';
import { imageFile } from '../support/image-file.js';
import { tempFolder } from '../support/temp.js';
import { momentsOf } from './cubes.js';

test('both pixels of a pair are valid, and neighbours in a row or column of one block', async (t) => {
  const folder = await tempFolder(t);
  const [width, height, count, nodata] = [150, 90, 17, -1];
  const next = random(4);
  const bands = Array.from({ length: count }, () =>
    Int16Array.from({ length: width * height }, () => (next() < 0.02 ? nodata : Math.floor(30_000 * next()))),
  );
  const { file, ones, zeros } = await cubeFile(folder, bands, width, height, nodata);
  const found = tileSums({ file, of: ['pixels', 'differences'] });
  const holdsData = (i: number) => bands.every((band) => band[i] !== nodata);
  const pixels: number[][] = [];
  const pairs: number[][] = [];
  for (let i = 0; i < width * height; i++) {
    if (!holdsData(i)) continue;
    pixels.push(bands.map((band) => band[i]!));
    const column = i % width;
    const row = Math.floor(i / width);
    if (row % CUBE_BLOCK_SIDE !== 0 && holdsData(i - width))
      pairs.push(bands.map((band) => band[i]! - band[i - width]!));
    if (column % CUBE_BLOCK_SIDE !== 0 && holdsData(i - 1))
      pairs.push(bands.map((band) => band[i]! - band[i - 1]!));
  }
  for (const [i, wanted] of [pixels, pairs].entries()) {
    const sums = new ExactSums(count);
    sums.add(found[i]!);
    const { pixels: number, covariance } = bandStatistics(sums.moments(ones, zeros));
    assert.equal(number, wanted.length);
    const flat = momentsOf(wanted).covariance.flat();
    for (const [at, value] of covariance.entries())
      assert.ok(Math.abs(value - flat[at]!) < 1e-3 * 1e-6 * 9e8);
  }
});

test('the noise is that of NumPy from the differences in both directions', async (t) => {
  const { width, height, stored, noise } = JSON.parse(
    readFileSync(new URL('../../../test/fixtures/hyperspectral/detectors.json', import.meta.url), 'utf8'),
  ) as { width: number; height: number; stored: number[][]; noise: number[][] };
  const bands = stored.map((band) => Int16Array.from(band));
  const { file, ones, zeros } = await cubeFile(await tempFolder(t), bands, width, height, -1);
  const sums = new ExactSums(bands.length);
  sums.add(tileSums({ file, of: ['differences'] })[0]);
  const { pixels, covariance } = bandStatistics(sums.moments(ones, zeros));
  assert.equal(pixels, (width - 1) * height + width * (height - 1));
  // Stored numbers are reflectances in ten thousandths.
  for (const [at, value] of noise.flat().entries())
    assert.ok(Math.abs(covariance[at] / 2e8 - value) < 1e-12, `${at}: ${covariance[at] / 2e8} ${value}`);
});

async function cubeFile(folder: string, bands: Int16Array[], width: number, height: number, nodata: number) {
  const transform = { originX: 13, originY: 52.5, pixelWidth: 0.0003, pixelHeight: 0.0003 };
  const image = { width, height, dataType: 'int16', nodata, epsg: 4326, transform } as const;
  const path = join(folder, 'cube.tif');
  await writeFile(path, encodeCube({ ...image, isCompressed: false }, bands));
  const [ones, zeros] = [bands.map(() => 1), bands.map(() => 0)];
  const file: SpectrumFile = {
    ...{ ...imageFile(path), width, height, dataType: 'int16', nodata, mask: undefined },
    ...{ bands: [...bands.keys()], scales: ones, offsets: zeros },
  };
  return { file, ones, zeros };
}
