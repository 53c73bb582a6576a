/** Labels: unusable ones are refused, and a request with many labels does not delay other requests. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { deflateSync } from 'node:zlib';
import { gridByName } from '../../src/grid/index.js';
import { readLabels } from '../../src/hyperspectral/index.js';
import { checkLabels, labelCodes, openLabels } from '../../src/hyperspectral/labels.js';
import { forEachPixelRun, parseZone } from '../../src/imagery/index.js';
import { random } from '../raster/images.js';
import { tempFolder } from '../support/temp.js';

const PLACE = { grid: 'geohash', geocode: 'u2edk' } as const;
const GRID = gridByName('geohash');
const CELL = GRID.bounds(PLACE.geocode);
const polygon = (ring: number[][]) => ({ type: 'Polygon', coordinates: [[...ring, ring[0]!]] });
/** A point by its fractions of the cell, from west to east and from south to north. */
const at = (x: number, y: number) => [
  CELL.west + x * (CELL.east - CELL.west),
  CELL.south + y * (CELL.north - CELL.south),
];
const square = (from: number, to: number) =>
  polygon([at(from, from), at(to, from), at(to, to), at(from, to)]);

function imageOf(codes: Uint8Array, width: number, height: number) {
  const [west, north] = at(0, 1);
  const [dx, dy] = [(CELL.east - CELL.west) / width, (CELL.north - CELL.south) / height];
  return {
    ...{ epsg: 4326, width, height, transform: [west!, dx, 0, north!, 0, -dy] },
    codes: deflateSync(codes).toString('base64'),
  };
}

test('the event loop is not blocked while a large image of labels is checked and opened', async () => {
  const side = 8192;
  const codes = new Uint8Array(side * side).fill(7);
  codes[codes.length - 1] = 9;
  const raster = imageOf(codes, side, side);
  for (const read of [checkLabels, openLabels]) {
    let [turns, isDone] = [0, false];
    const reading = Promise.resolve(read({ raster })).finally(() => {
      isDone = true;
    });
    for (; !isDone; turns++) await new Promise((resolve) => setImmediate(resolve));
    await reading;
    assert.ok(turns > 20, `${turns} turns of the event loop`);
  }
  const open = await openLabels({ raster });
  assert.ok(open.raster!.codes.buffer instanceof SharedArrayBuffer);
  assert.ok(Buffer.compare(open.raster!.codes, codes) === 0);
  codes[codes.length - 1] = 255;
  await assert.rejects(checkLabels({ raster: imageOf(codes, side, side) }), /holds the code 255/);
});

test('an image whose number of bytes does not match its size is refused', async () => {
  const codes = Uint8Array.from({ length: 900_000 }, (_, i) => i % 5);
  const sized = (width: number, height: number) => ({ ...imageOf(codes, 1000, 900), width, height });
  await checkLabels({ raster: sized(1000, 900) });
  const cut = { ...sized(1000, 900), codes: sized(1000, 900).codes.slice(0, 800) };
  for (const [raster, why] of [
    [sized(1000, 901), /has fewer pixels than its size says/],
    [sized(1000, 899), /has more pixels than its size says/],
    [sized(10_000, 10_000), /10000 x 10000 pixels is too large/],
    [cut, /cannot be decompressed/],
    [{ ...cut, codes: 'no zlib' }, /cannot be decompressed/],
  ] as const) {
    await assert.rejects(checkLabels({ raster }), { code: 'TW_ANALYSIS_LABELS', message: why });
    await assert.rejects(openLabels({ raster }), { code: 'TW_ANALYSIS_LABELS', message: why });
  }
});

test('a pixel has the code of the last polygon around its centre', () => {
  const next = random(5);
  const [width, height] = [60, 40];
  const triangles = Array.from({ length: 30 }, () =>
    Array.from({ length: 3 }, () => at(1.6 * next() - 0.3, 1.6 * next() - 0.3)),
  );
  const features = triangles.map((ring, i) => ({ code: i + 1, geometry: polygon(ring) }));
  const codes = labelCodes({ features }, PLACE, { width, height });
  let different = 0;
  for (let i = 0; i < codes.length; i++) {
    const [x, y] = at(((i % width) + 0.5) / width, 1 - (Math.floor(i / width) + 0.5) / height) as [
      number,
      number,
    ];
    const isInside = (ring: number[][]) =>
      ring.filter(([ax, ay], k) => {
        const [bx, by] = ring[(k + 1) % 3]!;
        return ay! > y !== by! > y && x < ax! + ((bx! - ax!) * (y - ay!)) / (by! - ay!);
      }).length % 2;
    if (codes[i] !== triangles.findLastIndex(isInside) + 1) different++;
  }
  assert.equal(different, 0);
  assert.ok(new Set(codes).size > 10);
});

test('overlapping polygons that cover too many pixels in total are refused', () => {
  const covering = { code: 3, geometry: square(-1, 2) };
  const size = { width: 2000, height: 2000 };
  const codes = labelCodes({ features: [covering] }, PLACE, size);
  assert.ok(codes.every((code) => code === 3));
  assert.throws(() => labelCodes({ features: Array(260).fill(covering) }, PLACE, size), {
    code: 'TW_ANALYSIS_LABELS',
    message: /too many pixels/,
  });
});

test('a polygon outside a cell causes no work there', () => {
  let calls = 0;
  const grid = Object.create(GRID, {
    toLonLat: {
      value: (x: number, y: number) => {
        calls++;
        return GRID.toLonLat(x, y);
      },
    },
  });
  const fail = () => assert.fail('it has no pixels here');
  for (const [x, y] of [
    [5, 0],
    [-5, 0],
    [0, 5],
    [0, -5],
  ] as const) {
    const ring = [at(x, y), at(x + 1, y), at(x + 1, y + 1)];
    forEachPixelRun(parseZone(polygon(ring)), grid, PLACE.geocode, { width: 500, height: 500 }, fail, fail);
  }
  assert.ok(calls <= 8, `${calls}`);
});

test('an unusable geometry is reported with the number of its feature', async (t) => {
  const good = { type: 'Point', coordinates: [15, 47] };
  const bad = {
    type: 'LineString',
    coordinates: [
      [15, 47],
      [16, 47],
    ],
  };
  const features = [good, good, bad].map((geometry) => ({ code: 1, geometry }));
  await assert.rejects(checkLabels({ features }), {
    code: 'TW_ANALYSIS_LABELS',
    message: /feature 3: .*its type is "LineString"/,
  });
  const path = join(await tempFolder(t), 'labels.geojson');
  // Features of class 0 are not sent, but they are counted.
  const sent = [good, bad].map((geometry, i) => ({ type: 'Feature', properties: { class: i }, geometry }));
  await writeFile(path, JSON.stringify({ type: 'FeatureCollection', features: sent }));
  await assert.rejects(readLabels(path), {
    code: 'TW_ANALYSIS_LABELS',
    message: /feature 2 of .*labels\.geojson: .*"LineString"/,
  });
});
