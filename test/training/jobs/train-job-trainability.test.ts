/** Compares the check of a cell before its process starts with reading and cutting the whole cell. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Mask } from '../../../src/raster/index.js';
import type { TileRecord } from '../../../src/storage/index.js';
import type { AcquisitionFiles, DatePair } from '../../../src/training/acquisitions.js';
import { readAcquisitions } from '../../../src/training/acquisitions.js';
import { reasonNotTrainableByMasks } from '../../../src/training/cells.js';
import { getModelSpec } from '../../../src/training/index.js';
import { labelImages } from '../../../src/training/labelled-images.js';
import { makePatches } from '../../../src/training/patches.js';
import { randomStream } from '../../../src/utils/random.js';
import { imageFile } from '../../support/image-file.js';
import { tempFolder } from '../../support/temp.js';
import { writeDate } from '../acquisition-files.js';
import { type Field, field } from '../synthetic-land.js';

/** A tile whose groups are the files of a date, by their paths. */
function tileOf({ width, height }: Field, { bands, mask }: AcquisitionFiles): TileRecord {
  const paths = [...new Set(Object.values(bands).map(({ path }) => path)), mask.path];
  const groups = paths.map((name) => ({
    ...{ name, width, height, role: name === mask.path ? 'mask' : 'data', dataType: 'uint16' },
    bands: Object.entries(bands)
      .filter(([, { path }]) => path === name)
      .toSorted(([, a], [, b]) => a.band - b.band)
      .map(([commonName, { scale, offset }]) => ({ name: commonName, commonName, scale, offset })),
  }));
  return { groups } as TileRecord;
}

const storage = {
  tileImage: ({ groups }: { groups: { name: string }[] }, name: string) =>
    imageFile(name === 'mask' ? groups.at(-1)!.name : name),
};

/** Returns the outcome of the training, which reads everything. */
async function found(
  model: string,
  dates: AcquisitionFiles[],
  pairs?: DatePair[],
): Promise<string | undefined> {
  const spec = getModelSpec(model);
  const read = await readAcquisitions(dates);
  if ('skipped' in read) return read.skipped;
  const cut = makePatches(spec, labelImages(spec, read.dates, pairs));
  return 'skipped' in cut ? cut.skipped : undefined;
}

test('rejects from masks the cells that training rejects, with the same reason', async (t) => {
  const folder = await tempFolder(t);
  const random = randomStream(7).next;
  const below = (limit: number) => Math.floor(random() * limit);
  const codes = [Mask.nodata, Mask.cloud, Mask.shadow, Mask.snow, Mask.notAssessed];
  const reasons = new Set<string>();
  for (let cell = 0; cell < 60; cell++) {
    const model = ['ndvi', 'ndmi', 'cloud-removal'][below(3)]!;
    const edge = () => (model === 'ndvi' ? 40 + below(120) : 180 + below(160));
    const [width, height] = [edge(), edge()];
    const count = model === 'cloud-removal' ? 2 : 1 + below(3);
    const hasGaps = below(2) === 0;
    const fields = Array.from({ length: count }, (_, i) => {
      const differs = below(40) === 0 ? 16 : 0;
      const date = field(width + differs, height, { seed: cell, time: Date.UTC(2020, i, 1) });
      const cover = (paint: (at: number) => void) => {
        const [left, top] = [below(date.width), below(date.height)];
        for (let y = top; y < date.height; y++)
          for (let x = left; x < date.width; x++) paint(y * date.width + x);
      };
      const code = codes[below(codes.length)]!;
      if (below(4) > 0) cover((at) => (date.mask[at] = code));
      if (hasGaps) cover((at) => (date.bands.red[at] = Number.NaN));
      return date;
    });
    const dates = fields.map((date, i) => writeDate(folder, `${cell}-${i}`, date));
    const pairs = model === 'cloud-removal' ? [{ cloudy: 0, clear: 1 }] : undefined;
    const tiles = fields.map((date, i) => tileOf(date, dates[i]!));
    const here = await reasonNotTrainableByMasks(storage, getModelSpec(model), { tiles }, { dates, pairs });
    const there = await found(model, dates, pairs);
    // Only the bands show if an unassessed pixel of a pair is cloudy.
    const isUnassessed = pairs !== undefined && fields[0]!.mask.includes(Mask.notAssessed);
    if (hasGaps || isUnassessed)
      assert.ok(here === undefined || there !== undefined, `${here}, though it can be trained`);
    else assert.equal(here, there);
    reasons.add(`${here}`.replace(/\d+/g, 'n').replace(/\(.*/, ''));
  }
  assert.ok(reasons.has('undefined') && reasons.size >= 4, [...reasons].join('; '));
});
