/** Spectra of points and areas, compared with the pixels of the tiles. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gridByName } from '../../src/grid/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { readImage } from '../../src/raster/index.js';
import { writeEnvi } from '../raster/envi.js';
import { random } from '../raster/images.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const SIDE = 70;
const COUNT = 20;
const HOLE = -9999;
const DAYS = ['2024-06-01', '2024-06-11', '2024-07-01'];
const area = (west: number, south: number, east: number, north: number) => ({
  type: 'Polygon',
  coordinates: [
    [
      [west, south],
      [east, south],
      [east, north],
      [west, north],
      [west, south],
    ],
  ],
});

/** Three dates of one area over several cells; band 8 is bad, band 12 is empty, and a corner has no data. */
async function cubes(t: TestContext, compress?: 'deflate'): Promise<TilewrightNode> {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  for (const [day, date] of DAYS.entries()) {
    const next = random(day + 1);
    const bands = Array.from({ length: COUNT }, (_, band) =>
      Array.from({ length: SIDE * SIDE }, (_, i) =>
        band === 12 || (i % SIDE < 9 && i < 20 * SIDE) ? HOLE : Math.floor(3000 * next()),
      ),
    );
    writeEnvi(join(folder, `day${day}.bil`), {
      ...{ width: SIDE, height: SIDE, bands, type: 'int16', interleave: 'bil' },
      lines: [
        'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}',
        `data ignore value = ${HOLE}`,
        `acquisition time = ${date}T10:00:00Z`,
        'wavelength units = Nanometers',
        `wavelength = {${bands.map((_, band) => 450 + 50 * band).join()}}`,
        `bbl = {${bands.map((_, band) => (band === 8 ? 0 : 1)).join()}}`,
        'reflectance scale factor = 10000',
      ],
    });
    const { failed } = await ingest(node, {
      ...{ href: join(folder, `day${day}.hdr`), collection: 'cubes', precision: 6 },
      ...(compress && { compress }),
    });
    assert.deepEqual(failed, []);
  }
  // A tile of another instrument.
  await writeRaster(join(folder, 'other.tif'));
  const flags = { collection: 'other', datetime: '2024-06-05T10:00:00Z', precision: 6 };
  await ingest(node, { href: join(folder, 'other.tif'), ...flags });
  return node;
}

async function spectraOf(node: TilewrightNode, payload: object) {
  const answer = await node.server.inject({ method: 'POST', url: '/spectra', payload });
  assert.equal(answer.statusCode, 200, answer.body);
  return answer.json();
}

/** Mean and deviation of each band over the pixels whose centres lie in a box, of all tiles of a day. */
async function naive(node: TilewrightNode, day: string, [west, south, east, north]: number[]) {
  const values = Array.from({ length: COUNT }, () => [] as number[]);
  let [pixels, valid] = [0, 0];
  for (const tile of await tilesOf(node)) {
    if (tile.collection !== 'cubes' || new Date(tile.start).toISOString().slice(0, 10) !== day) continue;
    const { bands, header } = await readImage(node.storage.tileImage(tile, '30m'));
    const box = gridByName('geohash').bounds(tile.geocode);
    const { width, height } = header;
    for (let i = 0; i < width * height; i++) {
      const lon = box.west + (((i % width) + 0.5) / width) * (box.east - box.west);
      const lat = box.north - ((Math.floor(i / width) + 0.5) / height) * (box.north - box.south);
      if (lon < west! || lon > east! || lat < south! || lat > north!) continue;
      pixels++;
      if (bands.some((band, b) => b !== 12 && b !== 8 && band[i] === HOLE)) continue;
      valid++;
      for (const [b, band] of bands.entries()) if (band[i] !== HOLE) values[b]!.push(band[i]! * 0.0001);
    }
  }
  const mean = values.map((band) => (band.length ? band.reduce((a, b) => a + b, 0) / band.length : null));
  const std = values.map((band, b) =>
    band.length ? Math.sqrt(band.reduce((sum, v) => sum + (v - mean[b]!) ** 2, 0) / band.length) : null,
  );
  return { pixels, valid, mean, std };
}

function assertClose(found: (number | null)[], wanted: (number | null)[]): void {
  assert.equal(found.length, wanted.length);
  for (const [i, value] of wanted.entries())
    if (value === null) assert.equal(found[i], null);
    else assert.ok(Math.abs(found[i]! - value) < 1e-12, `band ${i}: ${found[i]}, not ${value}`);
}

for (const compress of [undefined, 'deflate'] as const)
  test(`the spectrum of an area over several cells, ${compress ?? 'not compressed'}`, async (t) => {
    const node = await cubes(t, compress);
    const box = [15.0, 47.836, 15.02, 47.853];
    const { spectra, sensors, skipped } = await spectraOf(node, {
      geometry: area(...(box as [number, number, number, number])),
    });
    assert.ok(new Set((await tilesOf(node)).map(({ geocode }) => geocode)).size > 3);
    assert.ok(skipped > 0, 'tiles of the other instrument');
    assert.deepEqual(
      spectra.map(({ datetime }: { datetime: string }) => datetime.slice(0, 10)),
      DAYS,
    );
    assert.equal(sensors.length, 1);
    assert.deepEqual(sensors[0].bands[8], { name: 'b9', wavelength: 850, bad_band: true });
    for (const [i, day] of DAYS.entries()) {
      const { mean, std, ...counts } = await naive(node, day, box);
      assert.deepEqual({ pixels: spectra[i].pixels, valid: spectra[i].valid }, counts);
      assert.ok(counts.valid > 100 && counts.valid < counts.pixels);
      assertClose(spectra[i].mean, mean);
      assertClose(spectra[i].std, std);
    }
  });

test('a point has the values of its pixel, and filters select dates', async (t) => {
  const node = await cubes(t);
  const [lon, lat] = [15.012, 47.845];
  const geometry = { type: 'Point', coordinates: [lon, lat] };
  const { spectra } = await spectraOf(node, { geometry, datetime: '2024-06-02/..' });
  assert.equal(spectra.length, 2);
  const [{ values, valid, pixels }] = spectra;
  assert.deepEqual([valid, pixels, values.length, values[12]], [1, 1, COUNT, null]);
  // The pixel around the point has its centre within half a pixel.
  const tile = (await tilesOf(node)).find(({ start, geocode }) => {
    const { west, east, south, north } = gridByName('geohash').bounds(geocode);
    return (
      start === Date.parse('2024-06-11T10:00:00Z') && lon >= west && lon < east && lat >= south && lat < north
    );
  })!;
  const { bands, header } = await readImage(node.storage.tileImage(tile, '30m'));
  const { west, north } = gridByName('geohash').bounds(tile.geocode);
  const column = Math.floor((lon - west) / header.transform.xx);
  const row = Math.floor((lat - north) / header.transform.yy);
  assertClose(
    values,
    bands.map((band, b) => (b === 12 ? null : band[row * header.width + column]! * 0.0001)),
  );

  const nothing = await spectraOf(node, { geometry: { type: 'Point', coordinates: [0, 0] } });
  assert.deepEqual(nothing.spectra, []);
  const bad = await node.server.inject({
    method: 'POST',
    url: '/spectra',
    payload: { geometry: { type: 'Circle' } },
  });
  assert.equal(bad.json().code, 'TW_IMAGERY_REGION');
});

test('a value that is not finite counts as no data of its band', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const bands = Array.from({ length: COUNT }, (_, band) => [0.5, 0.5, 0.5, band < 2 ? Infinity : 0.5]);
  writeEnvi(join(folder, 'cube.bsq'), {
    ...{ width: 2, height: 2, bands, type: 'float32', interleave: 'bsq' },
    lines: [
      'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}',
      'acquisition time = 2024-06-01T10:00:00Z',
      'wavelength units = Nanometers',
      `wavelength = {${bands.map((_, band) => 450 + 50 * band).join()}}`,
      `bbl = {${bands.map((_, band) => Number(band >= 2)).join()}}`,
    ],
  });
  const options = { href: join(folder, 'cube.hdr'), collection: 'cubes', precision: 6 };
  assert.deepEqual((await ingest(node, options)).failed, []);
  const { spectra } = await spectraOf(node, { geometry: area(14.99, 47.8, 15.01, 47.9) });
  const [{ valid, mean, std }] = spectra;
  assert.equal(valid, 4);
  assert.deepEqual(new Set(mean), new Set([0.5]));
  assert.deepEqual(new Set(std), new Set([0]));
});
