/** Mosaics, compared with a choice made pixel by pixel from the files. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { gridByName } from '../../src/grid/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { Mask, readImage } from '../../src/raster/index.js';
import type { TileRecord } from '../../src/storage/index.js';
import { randomly, storeScene } from '../derive/tiles.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';
import { type DatedScene, mapTileAt, nodeWithScenes, pictureOf } from './maps.js';

const HALF = 20037508.342789244;
const LOW = 0.04;
const HIGH = 0.13;

/** Stored red and mask codes of a complete tile. */
async function pixelsOf(node: TilewrightNode, tile: TileRecord) {
  const group = tile.groups.find(({ role }) => role === 'data')!;
  const { bands } = await readImage(node.storage.tileImage(tile, group.name), [2]);
  const mask = await readImage(node.storage.tileImage(tile, 'mask'));
  return { tile, red: bands[0], width: group.width, height: group.height, mask: mask.bands[0] };
}

function medianOf(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
}

test('each pixel comes from the least cloudy tile where it is clear, or is the median of the clear tiles', async (t) => {
  const scenes: DatedScene[] = fc
    .sample(
      fc.record({
        cloud: fc.constantFrom(0, 20, 30, 60, 90),
        edge: fc.constantFrom(0, 60, 150, 240),
        seed: fc.integer({ min: 1, max: 1e6 }),
      }),
      { seed: 42, numRuns: 6 },
    )
    .map((options, i) => ({ ...options, datetime: `2024-06-${10 + i}T10:00:00Z` }));
  const { node } = await nodeWithScenes(t, scenes);
  const tiles = await tilesOf(node);
  const all = await Promise.all(tiles.map((tile) => pixelsOf(node, tile)));
  const grid = gridByName('geohash');

  for (const [z, lon, lat, filter, keep] of [
    // More than 64 tiles, so that several pages are read.
    [13, 15.01, 47.845, '', () => true],
    [13, 15.01, 47.845, '&minCloud=10', ({ cloudCover }: TileRecord) => cloudCover! >= 10],
    [14, 15.01, 47.845, '', () => true],
    [14, 15.01, 47.845, '&pixel_selection=median', () => true],
    [16, 15.02, 47.843, '', () => true],
    [15, 15.015, 47.843, '&maxCloud=40', ({ cloudCover }: TileRecord) => cloudCover! <= 40],
    [
      15,
      15.015,
      47.843,
      '&datetime=2024-06-12/2024-06-14',
      ({ start }: TileRecord) => start >= Date.UTC(2024, 5, 12) && start < Date.UTC(2024, 5, 15),
    ],
  ] as const) {
    const map = mapTileAt(z, lon, lat);
    const look = `expression=red&rescale=${LOW},${HIGH}${filter}`;
    const { pixels } = await pictureOf(node, `/xyz/test/${z}/${map.x}/${map.y}.png?${look}`);
    const order = all
      .filter(({ tile }) => keep(tile))
      .toSorted((a, b) => a.tile.cloudCover! - b.tile.cloudCover! || b.tile.start - a.tile.start);
    let drawn = 0;
    let wrong = 0;
    for (let i = 0; i < 256 * 256; i++) {
      const x = map.west + (((i % 256) + 0.5) / 256) * (map.east - map.west);
      const y = map.north - ((Math.floor(i / 256) + 0.5) / 256) * (map.north - map.south);
      const pixelLon = (x / HALF) * 180;
      const pixelLat = (Math.atan(Math.sinh((y / HALF) * Math.PI)) * 180) / Math.PI;
      const geocode = grid.encode(pixelLon, pixelLat, 6);
      const { west, south, east, north } = grid.bounds(geocode);
      const clear: number[] = [];
      for (const { tile, red, width, height, mask } of order) {
        if (tile.geocode !== geocode) continue;
        const column = Math.floor(((pixelLon - west) / (east - west)) * width);
        const row = Math.floor(((north - pixelLat) / (north - south)) * height);
        const at = row * width + column;
        if (red[at] === 0 || (mask[at] !== 1 && mask[at] !== 255)) continue;
        clear.push(red[at] * 0.0001);
      }
      const expected = filter.includes('median') ? medianOf(clear) : (clear[0] ?? NaN);
      if (!Number.isNaN(expected)) drawn++;
      const opaque = pixels[4 * i + 3] === 255;
      const count = Math.min(255, Math.max(0, ((expected - LOW) / (HIGH - LOW)) * 255));
      if (opaque === Number.isNaN(expected)) wrong++;
      else if (opaque && Math.abs(pixels[4 * i] - count) > 1) wrong++;
    }
    const name = `${z} ${filter}: ${wrong} wrong of ${drawn} drawn`;
    assert.ok(drawn > 3000, name);
    // Rounding of a position on the edge between two pixels.
    assert.ok(wrong <= 20, name);
  }
});

test('a map shows the tiles that have its bands', async (t) => {
  const { node, folder } = await nodeWithScenes(t, [{ datetime: '2024-06-10T10:00:00Z', cloud: 20 }]);
  const path = await writeTestScene(join(folder, 'other.tif'), { seed: 7 });
  const other = { href: path, datetime: '2024-06-11T10:00:00Z', collection: 'test', precision: 6 };
  await ingest(node, { ...other, scale: 0.0001, maskBand: 5, bands: { temperature: 3 } });
  const { z, x, y } = mapTileAt(14, 15.01, 47.845);
  const opaque = async (look: string) => {
    const { pixels } = await pictureOf(node, `/xyz/test/${z}/${x}/${y}.png?${look}`);
    return pixels.filter((value, i) => i % 4 === 3 && value > 0).length;
  };
  const shown = await opaque('expression=temperature');
  assert.ok(shown > 3000, `${shown}`);
  assert.equal(await opaque('assets=temperature'), shown);
  const median = await opaque('expression=red&pixel_selection=median');
  assert.ok(median > 3000, `${median}`);
  assert.equal(await opaque('expression=red'), median);

  const extent = await node.server.inject('/xyz/test/tilejson.json?expression=temperature');
  assert.equal(extent.statusCode, 200, extent.body);
  const missing = await node.server.inject(`/xyz/test/${z}/${x}/${y}.png?expression=salinity`);
  assert.equal(missing.statusCode, 400);
  assert.equal(missing.json().code, 'TW_IMAGERY_BAND');
});

test('a pixel that was not assessed for cloud is drawn only where no date is clear', async (t) => {
  const node = await testNode(t, join(await tempFolder(t), 'data'));
  const [geocode, width, height] = ['9q8yyk', 60, 40];
  const random = randomly(5);
  const codes = [Mask.nodata, Mask.clear, Mask.cloud, Mask.shadow, Mask.notAssessed];
  const weights = [
    [1, 3, 3, 1, 3],
    [1, 3, 1, 1, 3],
    [1, 2, 2, 1, 0],
    [0, 0, 0, 0, 1],
    [1, 0, 0, 0, 2],
  ];
  const dates = weights.map((share, day) => {
    const drawnFrom = share.flatMap((count, c) => Array<number>(count).fill(codes[c]!));
    const mask = Uint8Array.from({ length: width * height }, (_, i) => {
      // In one corner no date is clear, and no pixel of the fourth date exists.
      const isCorner = i % width < 20 && i < 15 * width;
      const code = drawnFrom[Math.floor(random() * drawnFrom.length)]!;
      if (!isCorner) return code;
      return day === 3 ? Mask.nodata : code === Mask.clear ? Mask.cloud : code;
    });
    const pixels = Uint16Array.from(mask, (code, i) => (code === 0 ? 0 : 20 + ((day * 45 + i) % 220)));
    const assessed = mask.filter((code) => code > 0 && code < 6);
    const cloud = assessed.length === 0 ? 2 : assessed.filter((code) => code === 2).length / assessed.length;
    return { day, mask, pixels, cloud };
  });
  for (const { day, mask, pixels } of dates) {
    const groups = [{ name: '10m', width, height, bands: [{ name: 'red', scale: 1, offset: 0, pixels }] }];
    await storeScene(node.storage, { id: `s${day}`, day, tiles: [{ geocode, groups, mask }] });
  }
  const order = dates.toSorted((a, b) => a.cloud - b.cloud || b.day - a.day);
  const { west, south, east, north } = gridByName('geohash').bounds(geocode);
  const map = mapTileAt(16, (west + east) / 2, (south + north) / 2);
  for (const selection of ['first', 'median']) {
    const look = `expression=red&rescale=0,255&resampling=nearest&pixel_selection=${selection}`;
    const { pixels } = await pictureOf(node, `/xyz/test/16/${map.x}/${map.y}.png?${look}`);
    let [drawn, wrong, provisional] = [0, 0, 0];
    eachPixel(map, geocode, { width, height }, (i, at) => {
      const valuesOf = (code: number) =>
        order.filter(({ mask }) => mask[at] === code).map((date) => date.pixels[at]!);
      const clear = valuesOf(Mask.clear);
      const values = clear.length > 0 ? clear : valuesOf(Mask.notAssessed);
      if (clear.length === 0 && values.length > 0) provisional++;
      const expected = values.length === 0 ? NaN : selection === 'median' ? medianOf(values) : values[0]!;
      if (values.length > 0) drawn++;
      const opaque = pixels[4 * i + 3] === 255;
      if (opaque !== values.length > 0 || (opaque && Math.abs(pixels[4 * i]! - expected) > 1)) wrong++;
    });
    assert.ok(drawn > 1000 && provisional > 100, `${drawn} ${provisional}`);
    assert.ok(wrong <= 20, `${selection}: ${wrong} wrong of ${drawn}`);
  }
});

/** Calls `look` with each pixel of a map tile that lies in a cell, and the position of the cell's pixel below its centre. */
function eachPixel(
  map: ReturnType<typeof mapTileAt>,
  geocode: string,
  { width, height }: { width: number; height: number },
  look: (pixel: number, at: number) => void,
): void {
  const { west, south, east, north } = gridByName('geohash').bounds(geocode);
  for (let i = 0; i < 256 * 256; i++) {
    const x = map.west + (((i % 256) + 0.5) / 256) * (map.east - map.west);
    const y = map.north - ((Math.floor(i / 256) + 0.5) / 256) * (map.north - map.south);
    const lon = (x / HALF) * 180;
    const lat = (Math.atan(Math.sinh((y / HALF) * Math.PI)) * 180) / Math.PI;
    if (lon < west || lon >= east || lat < south || lat >= north) continue;
    const column = Math.floor(((lon - west) / (east - west)) * width);
    look(i, Math.floor(((north - lat) / (north - south)) * height) * width + column);
  }
}

test('another nodata value hides no pixel of other dates behind pixels that have no data', async (t) => {
  const node = await testNode(t, join(await tempFolder(t), 'data'));
  const size = { width: 60, height: 40 };
  const geocode = '9q8yyk';
  const random = randomly(4321);
  const OWN = 0;
  const OTHER = 90;
  const codes = [Mask.clear, Mask.clear, Mask.cloud, Mask.notAssessed];
  const dates = [0, 1, 2, 3].map((day) => {
    // Each date ends at another edge, and each band has holes of its own; at the last columns no date has data.
    const isOutside = (i: number) => {
      const [x, y] = [i % size.width, Math.floor(i / size.width)];
      return x > 54 || [x < 20, x > 35, y < 15, y > 25][day]!;
    };
    const band = (share: number) =>
      Uint8Array.from({ length: size.width * size.height }, (_, i) => {
        if (isOutside(i) || random() < share) return OWN;
        return random() < 0.2 ? OTHER : 30 + ((day * 45 + i) % 200);
      });
    const [red, nir, kinds] = [band(0.2), band(0.2), band(0.2)];
    const mask = red.map((value, i) =>
      value === OWN && nir[i] === OWN && kinds[i] === OWN ? Mask.nodata : codes[Math.floor(random() * 4)]!,
    );
    return { day, mask, bands: { red, nir, kinds } };
  });
  for (const { day, mask, bands } of dates) {
    const common = { ...size, dataType: 'uint8' as const, nodata: OWN };
    const groups = [
      {
        ...{ ...common, name: 'a' },
        bands: [
          { name: 'red', pixels: bands.red },
          { name: 'nir', pixels: bands.nir },
        ],
      },
      { ...{ ...common, name: 'b', codes: true }, bands: [{ name: 'kinds', pixels: bands.kinds }] },
    ];
    await storeScene(node.storage, { id: `s${day}`, day, tiles: [{ geocode, groups, mask }] });
  }
  const cloudOf = (mask: Uint8Array) => {
    const assessed = mask.filter((code) => code > 0 && code < 6);
    return assessed.filter((code) => code === Mask.cloud).length / assessed.length;
  };
  const order = dates.toSorted((a, b) => cloudOf(a.mask) - cloudOf(b.mask) || b.day - a.day);
  const { west, south, east, north } = gridByName('geohash').bounds(geocode);
  const map = mapTileAt(16, (west + east) / 2, (south + north) / 2);
  for (const selection of ['first', 'median'])
    for (const name of ['red', 'kinds'] as const)
      for (const nodata of [undefined, OTHER, 255, NaN, OWN]) {
        const given = nodata === undefined ? '' : `&nodata=${nodata}`;
        const look = `expression=${name}&rescale=0,255&resampling=nearest&pixel_selection=${selection}${given}`;
        const { pixels } = await pictureOf(node, `/xyz/test/16/${map.x}/${map.y}.png?${look}`);
        const counts = { drawn: 0, wrong: 0, fillers: 0 };
        eachPixel(map, geocode, size, (i, at) => {
          // From the best kind of pixel to the worst.
          const kinds: number[][] = [[], [], []];
          for (const { mask, bands } of order) {
            const value = bands[name][at]!;
            const code = name === 'kinds' && mask[at] !== Mask.nodata ? Mask.clear : mask[at];
            if (value === (nodata ?? OWN) || code === Mask.cloud) continue;
            kinds[value === OWN || code === Mask.nodata ? 2 : code === Mask.clear ? 0 : 1]!.push(value);
          }
          const best = kinds.findIndex((values) => values.length > 0);
          const values = kinds[best] ?? [];
          if (best === 2) counts.fillers++;
          if (values.length > 0) counts.drawn++;
          const expected = selection === 'median' ? medianOf(values) : values[0]!;
          const opaque = pixels[4 * i + 3] === 255;
          const isRight = values.length > 0 ? opaque && Math.abs(pixels[4 * i]! - expected) <= 1 : !opaque;
          if (!isRight) counts.wrong++;
        });
        const label = `${selection} ${name} ${nodata}: ${JSON.stringify(counts)}`;
        assert.ok(counts.drawn > 1000 && counts.wrong <= 20, label);
        assert.equal(counts.fillers > 100, nodata !== undefined && nodata !== OWN, label);
      }

  // A preview shows one tile, so no other date is behind its pixels.
  const [first] = dates;
  for (const nodata of [OTHER, 255, NaN, OWN]) {
    const [id] = [`test_s${first!.day}_g${geocode}`];
    const { pixels } = await pictureOf(
      node,
      `/preview/${id}.png?expression=red&rescale=0,255&resampling=nearest&nodata=${nodata}`,
    );
    assert.equal(pixels.length, 4 * size.width * size.height);
    for (const [i, value] of first!.bands.red.entries())
      assert.equal(
        pixels[4 * i + 3] === 255,
        value !== nodata,
        `pixel ${i} of the preview, nodata ${nodata}`,
      );
  }
});
