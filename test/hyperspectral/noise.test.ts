/** Differences between neighbours, in a tile that is wider than its blocks. */

import assert from 'node:assert/strict';
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

test('both pixels of a pair are valid and lie in one row of one block', async (t) => {
  const folder = await tempFolder(t);
  const [width, height, count, nodata] = [150, 90, 17, -1];
  const next = random(4);
  const bands = Array.from({ length: count }, () =>
    Int16Array.from({ length: width * height }, () => (next() < 0.02 ? nodata : Math.floor(30_000 * next()))),
  );
  const transform = { originX: 13, originY: 52.5, pixelWidth: 0.0003, pixelHeight: 0.0003 };
  const image = { width, height, dataType: 'int16', nodata, epsg: 4326, transform } as const;
  const path = join(folder, 'cube.tif');
  await writeFile(path, encodeCube({ ...image, isCompressed: false }, bands));
  const each = Array.from({ length: count }, (_, band) => band);
  const [ones, zeros] = [each.map(() => 1), each.map(() => 0)];
  const file: SpectrumFile = {
    ...{ ...imageFile(path), width, height, dataType: 'int16', nodata, mask: undefined },
    ...{ bands: each, scales: ones, offsets: zeros },
  };
  const found = tileSums({ file, of: ['pixels', 'differences'] });
  const holdsData = (i: number) => bands.every((band) => band[i] !== nodata);
  const pixels: number[][] = [];
  const pairs: number[][] = [];
  for (let i = 0; i < width * height; i++) {
    if (!holdsData(i)) continue;
    pixels.push(bands.map((band) => band[i]!));
    const column = i % width;
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
