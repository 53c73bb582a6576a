/** Coordinates and times of netCDF in every packing, unit and calendar: netCDF4-python and cftime (make-axes.py) as oracles. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { openRaster, openTimeAxis } from '../../src/raster/index.js';
import { tempFolder } from '../support/temp.js';
import { repository } from './gdal.js';

const folder = join(repository, 'test/fixtures/raster/hdf5');

interface Expected {
  /** Decoded coordinates of the first and the last row and column. */
  coordinates: Record<string, { y: [number, number]; x: [number, number] }>;
  damaged: string[];
  /** Latitudes and longitudes of the outer edges. */
  bounds: Record<string, [y: [number, number], x: [number, number]]>;
  contradictory: string[];
  times: { name: string; units: string; steps: [number, number][] | null }[];
}

async function fixture(t: TestContext): Promise<{ path: string; expected: Expected }> {
  const path = join(await tempFolder(t), 'axes.nc');
  await writeFile(path, gunzipSync(await readFile(join(folder, 'axes.nc.gz'))));
  return { path, expected: JSON.parse(await readFile(join(folder, 'axes.json'), 'utf8')) };
}

test('packed coordinates are unpacked on every axis, in every number type', async (t) => {
  const { path, expected } = await fixture(t);
  assert.equal(Object.keys(expected.coordinates).length, 13);
  for (const [name, { y, x }] of Object.entries(expected.coordinates)) {
    const { transform, crs } = await openRaster(path, `/${name}/v`);
    const metres = name === 'kilometres' ? 1000 : 1;
    const [left, right] = x.map((value) => value * metres) as [number, number];
    const [north, south] = y.map((value) => value * metres).sort((a, b) => b - a) as [number, number];
    const step = { x: (right - left) / 6, y: (north - south) / 4 };
    const found = [transform.originX, transform.originY, transform.xx, transform.yy];
    const wanted = [left - step.x / 2, north + step.y / 2, step.x, -step.y];
    for (const [i, value] of found.entries())
      assert.ok(
        Math.abs(value - wanted[i]!) <= 2e-6 * Math.abs(wanted[i]!),
        `${name}: ${found}, not ${wanted}`,
      );
    assert.equal(crs.geographic, !/metres/.test(name), name);
  }
});

test('coordinates that are missing, in another unit, or packed by text that is not a number are refused', async (t) => {
  const { path, expected } = await fixture(t);
  for (const name of expected.damaged)
    await assert.rejects(
      openRaster(path, `/${name}/v`),
      { code: /TW_RASTER_(CORRUPT|UNSUPPORTED|NO_CRS)/, message: /\/y|scale_factor|add_offset|arc_second/ },
      name,
    );
});

test('times are those of cftime in every unit, calendar and packing, or are refused', async (t) => {
  const { path, expected } = await fixture(t);
  assert.equal(expected.times.filter(({ steps }) => steps === null).length, 18);
  for (const { name, units, steps } of expected.times) {
    if (steps === null)
      await assert.rejects(
        openTimeAxis(path, name),
        { code: /TW_RASTER_(CORRUPT|UNSUPPORTED)/, message: /gdal_translate -b N .* --datetime/ },
        `${name} ${units}`,
      );
    else
      assert.deepEqual(
        (await openTimeAxis(path, name))?.steps.map(({ start, end }) => [start, end]),
        steps,
        `${name} ${units}`,
      );
  }
});

test('pixels are the cells that bounds of coordinates describe', async (t) => {
  const { path, expected } = await fixture(t);
  assert.equal(Object.keys(expected.bounds).length, 9);
  for (const [name, [y, x]] of Object.entries(expected.bounds)) {
    const { transform, width, height } = await openRaster(path, `/${name}/v`);
    const { originX, originY, xx, yy } = transform;
    const found = [originY + height * yy, originY, originX, originX + width * xx];
    for (const [i, value] of found.entries())
      assert.ok(Math.abs(value - [...y, ...x][i]!) < 1e-9, `${name}: ${found}, not ${y} ${x}`);
  }
  for (const name of expected.contradictory)
    await assert.rejects(
      openRaster(path, `/${name}/v`),
      {
        code: 'TW_RASTER_CORRUPT',
        message: /coordinates \/.*\/y and their bounds contradict.*gdal_translate/,
      },
      name,
    );
});

test('the time of a forecast is the one that it is about', async (t) => {
  const { path } = await fixture(t);
  await assert.rejects(openTimeAxis(path, '/times/forecast'), {
    code: 'TW_RASTER_UNSUPPORTED',
    message: /ncpdq -a t0,began,lat,lon/,
  });
  const axis = await openTimeAxis(path, '/times/turned_forecast');
  assert.deepEqual([axis?.steps.length, axis?.bandsPerStep], [2, 2]);
});
