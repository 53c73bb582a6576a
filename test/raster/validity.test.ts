/** Files that say in all their ways which pixels hold data: pixels and validity as GDAL has them (fixtures/raster/validity/make.py). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  effectiveNodata,
  findValidityBand,
  nodataAsType,
  openRaster,
  readWindow,
} from '../../src/raster/index.js';
import { fixtures, needsGdal } from './gdal.js';

const folder = join(fixtures, 'validity');
const expected: Record<string, { pixels: number[]; valid: (0 | 1)[] }> = JSON.parse(
  readFileSync(join(folder, 'expected.json'), 'utf8'),
);

for (const [name, { pixels, valid }] of Object.entries(expected))
  test(`pixels and validity of ${name}`, name.endsWith('.jp2') ? needsGdal : {}, async () => {
    const header = await openRaster(join(folder, name));
    const { width, height, dataType } = header;
    const all = { column: 0, row: 0, width, height };
    const [band] = await readWindow(header, [0], all);
    assert.deepEqual(Array.from(band!), pixels);
    const by = findValidityBand(header, 0);
    const [opacity] = by ? await readWindow(by.header, [by.index], all) : [];
    const hole = nodataAsType(dataType, effectiveNodata(header));
    const holds = Array.from(band!, (value, i) => Number(value !== hole && opacity?.[i] !== 0));
    assert.deepEqual(holds, valid);
  });

test('colours of inks and of CIELab are refused', async () => {
  for (const name of ['cmyk.tif', 'cielab.tif'])
    await assert.rejects(openRaster(join(folder, name)), { code: 'TW_RASTER_UNSUPPORTED' });
});
