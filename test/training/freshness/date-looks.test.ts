/** Looks of dates, which stand for errors of models without a truth. */

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type LandChange, REGIONS, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import { encodeCog, Mask } from '../../../src/raster/index.js';
import { lookErrors } from '../../../src/training/date-errors.js';
import { RGB_BANDS } from '../../../src/training/models/spec.js';
import { imageFile } from '../../support/image-file.js';
import { tempFolder } from '../../support/temp.js';

test('a date that looks unlike those of the training has a larger error', async (t) => {
  const folder = await tempFolder(t);
  const dates = Array.from({ length: 8 }, (_, i) => ({
    datetime: `${new Date(Date.UTC(2022, 4, 1) + 61 * i * 86_400_000).toISOString().slice(0, 19)}Z`,
    cloudShare: 0,
  }));
  const mask = join(folder, 'mask.tif');
  await writeFile(
    mask,
    encodeCog({
      ...{ width: 96, height: 96, dataType: 'uint8', bands: [new Uint8Array(96 * 96).fill(Mask.clear)] },
      transform: { originX: 0, originY: 0, pixelWidth: 10, pixelHeight: 10 },
      ...{ epsg: 32633, bandTags: [{}], metadata: {}, overviews: 'nearest' },
    }),
  );
  const errors = async (name: string, change?: LandChange) => {
    const files = await writeSentinelLikeSeries(join(folder, name), {
      ...{ dates, seed: 5, region: REGIONS.fields, size: { width: 96, height: 96 } },
      ...(change && { change }),
    });
    const read = files.map(({ path, datetime }) => ({
      time: Date.parse(datetime),
      bands: Object.fromEntries(
        RGB_BANDS.map((band) => [
          band,
          { ...imageFile(path), band: ['blue', 'green', 'red'].indexOf(band), scale: 0.0001, offset: 0 },
        ]),
      ),
      mask: imageFile(mask),
    }));
    return lookErrors(read.slice(0, 6), read.slice(6));
  };
  const same = await errors('same');
  const changed = await errors('changed', { kind: 'buildings', from: '2023-04-15T00:00:00Z', share: 0.5 });
  assert.deepEqual(same.known, changed.known);
  assert.ok(changed.fresh.at(-1)!.error > 3 * same.fresh.at(-1)!.error);
});
