/** Series compared with a naive reading of all pixels. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gridByName } from '../../src/grid/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { readImage } from '../../src/raster/index.js';
import type { TileRecord } from '../../src/storage/index.js';
import { type GivenTile, randomly, storeScene } from '../derive/tiles.js';
import { testNode, tilesOf } from '../support/node.js';
import { tempFolder } from '../support/temp.js';
import { type DatedScene, nodeWithScenes, ringOfBox } from './maps.js';

const SCENES: DatedScene[] = [
  { datetime: '2024-06-01T10:00:00Z', seed: 1, cloud: 0 },
  { datetime: '2024-06-11T10:00:00Z', seed: 2, cloud: 60, edge: 50 },
  { datetime: '2024-06-21T10:00:00Z', seed: 3, cloud: 100 },
  { datetime: '2024-07-01T10:00:00Z', seed: 4, cloud: 20, edge: 200 },
];

interface Date {
  datetime: string;
  value?: number | null;
  mean?: number | null;
  std?: number | null;
  min?: number | null;
  max?: number | null;
  median?: number | null;
  valid: number;
  pixels: number;
}

async function seriesOf(node: TilewrightNode, payload: object): Promise<Date[]> {
  const answer = await node.server.inject({ method: 'POST', url: '/timeseries', payload });
  assert.equal(answer.statusCode, 200, answer.body);
  return answer.json().series;
}

/** NDVI of clear pixels whose centre is inside, by date, from complete files. */
async function naive(node: TilewrightNode, inside: (lon: number, lat: number) => boolean) {
  const dates = new Map<string, { values: number[]; pixels: number }>();
  for (const tile of await tilesOf(node)) {
    const group = tile.groups.find(({ role }) => role === 'data')!;
    const { bands } = await readImage(node.storage.tileImage(tile, group.name), [2, 3]);
    const mask = await readImage(node.storage.tileImage(tile, 'mask'));
    const { west, south, east, north } = gridByName(tile.grid).bounds(tile.geocode);
    const key = new globalThis.Date(tile.start).toISOString();
    const date = dates.get(key) ?? { values: [], pixels: 0 };
    dates.set(key, date);
    for (let i = 0; i < group.width * group.height; i++) {
      const x = west + (((i % group.width) + 0.5) / group.width) * (east - west);
      const y = north - ((Math.floor(i / group.width) + 0.5) / group.height) * (north - south);
      const [lon, lat] = gridByName(tile.grid).toLonLat(x, y);
      if (!inside(lon, lat)) continue;
      date.pixels++;
      const [red, nir] = [bands[0][i] * 0.0001, bands[1][i] * 0.0001];
      const code = mask.bands[0][i];
      if (bands[0][i] !== 0 && bands[1][i] !== 0 && (code === 1 || code === 255))
        date.values.push((nir - red) / (nir + red));
    }
  }
  return [...dates].sort().map(([datetime, date]) => ({ datetime, ...date }));
}

const near = (a: number | null | undefined, b: number) =>
  assert.ok(typeof a === 'number' && Math.abs(a - b) <= 1e-9, `${a} is not ${b}`);

for (const grid of ['geohash', 'quadtile'] as const) {
  test(`polygons and points over ${grid} cells`, async (t) => {
    const precision = grid === 'geohash' ? 6 : 15;
    const { node } = await nodeWithScenes(t, SCENES, { grid, precision });

    await t.test('a polygon over several cells, with a hole', async () => {
      const outer = [
        [15.003, 47.835],
        [15.031, 47.836],
        [15.03, 47.849],
        [15.012, 47.851],
        [15.003, 47.835],
      ];
      const hole = [
        [15.012, 47.84],
        [15.018, 47.84],
        [15.018, 47.844],
        [15.012, 47.844],
        [15.012, 47.84],
      ];
      const within = (ring: number[][], lon: number, lat: number) => {
        let odd = false;
        for (let i = 1; i < ring.length; i++) {
          const [[x1, y1], [x2, y2]] = [ring[i - 1], ring[i]];
          if (y1 > lat !== y2 > lat && lon < x1 + ((lat - y1) / (y2 - y1)) * (x2 - x1)) odd = !odd;
        }
        return odd;
      };
      const inside = (lon: number, lat: number) => within(outer, lon, lat) && !within(hole, lon, lat);
      const geometry = { type: 'Polygon', coordinates: [outer, hole] };
      const found = await seriesOf(node, { geometry, expression: 'ndvi' });
      const expected = await naive(node, inside);
      assert.equal(found.length, SCENES.length);
      const total = Math.max(...expected.map(({ pixels }) => pixels));
      assert.ok(total > 10_000);
      for (const [i, { datetime, values }] of expected.entries()) {
        assert.equal(found[i].datetime, datetime);
        assert.equal(found[i].valid, values.length, datetime);
        assert.equal(found[i].pixels, total);
        if (values.length === 0) {
          assert.equal(found[i].mean, null);
          continue;
        }
        const sorted = values.toSorted((a, b) => a - b);
        const mean = values.reduce((a, b) => a + b, 0) / values.length;
        near(found[i].mean, mean);
        near(found[i].std, Math.sqrt(values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length));
        near(found[i].min, sorted[0]);
        near(found[i].max, sorted[sorted.length - 1]);
        const half = sorted.length / 2;
        near(found[i].median, (sorted[Math.ceil(half) - 1] + sorted[Math.floor(half)]) / 2);
      }
      assert.equal(found[2].valid, 0, 'all cloud');
    });

    await t.test('polygons that overlap, touch, nest or repeat are one area', async () => {
      const outer = [15.004, 47.836, 15.024, 47.848] as const;
      const [west, south, east, north] = outer;
      const variants = [
        [[ringOfBox(...outer)], [ringOfBox(...outer).toReversed()]],
        [[ringOfBox(...outer)], [ringOfBox(west, south, east - 0.003, north - 0.004)]],
        [[ringOfBox(west, south, 15.016, north)], [ringOfBox(15.01, south, east, north)]],
        [[ringOfBox(west, south, 15.0131, north)], [ringOfBox(15.0131, south, east, north)]],
        [
          [ringOfBox(...outer), ringOfBox(15.01, 47.84, 15.02, 47.845)],
          [ringOfBox(15.009, 47.839, 15.021, 47.846)],
        ],
      ];
      const expected = await naive(
        node,
        (lon, lat) => lon > west && lon < east && lat > south && lat < north,
      );
      const total = Math.max(...expected.map(({ pixels }) => pixels));
      assert.ok(total > 5000, `${total}`);
      for (const coordinates of variants) {
        const found = await seriesOf(node, {
          geometry: { type: 'MultiPolygon', coordinates },
          expression: 'ndvi',
        });
        assert.equal(found.length, expected.length);
        for (const [i, { values }] of expected.entries()) {
          assert.equal(found[i].pixels, total);
          assert.equal(found[i].valid, values.length);
          if (values.length > 0) near(found[i].mean, values.reduce((a, b) => a + b, 0) / values.length);
        }
      }
    });

    await t.test('points have the value of the pixel around them', async () => {
      const [tile] = (await tilesOf(node)).filter(({ coverage }) => coverage === 100);
      const cells = gridByName(grid);
      const { west, south, east, north } = cells.bounds(tile.geocode);
      const { width, height } = tile.groups[0];
      for (const [column, row] of [
        [0, 0],
        [width - 1, height - 1],
        [5, 40],
      ]) {
        const centre = (c: number, r: number) =>
          cells.toLonLat(
            west + ((c + 0.5) / width) * (east - west),
            north - ((r + 0.5) / height) * (north - south),
          );
        const [lon, lat] = centre(column, row);
        const found = await seriesOf(node, {
          geometry: { type: 'Feature', geometry: { type: 'Point', coordinates: [lon, lat] } },
          expression: '(nir - red) / (nir + red)',
        });
        const expected = await naive(node, (x, y) => Math.hypot(x - lon, y - lat) < 1e-9);
        for (const [i, date] of found.entries()) {
          const [value] = expected.find(({ datetime }) => datetime === date.datetime)!.values;
          assert.equal(date.pixels, 1);
          assert.equal(date.valid, value === undefined ? 0 : 1, `${i}`);
          if (value === undefined) assert.equal(date.value, null);
          else near(date.value, value);
        }
        assert.ok(found.some(({ valid }) => valid === 1));
      }
    });

    await t.test('the filter selects the dates', async () => {
      const geometry = { type: 'Point', coordinates: [15.02, 47.843] };
      const series = await seriesOf(node, { geometry, expression: 'nir', datetime: '2024-06-05/2024-06-30' });
      assert.deepEqual(
        series.map(({ datetime }) => datetime),
        ['2024-06-11T10:00:00.000Z', '2024-06-21T10:00:00.000Z'],
      );
      assert.deepEqual(await seriesOf(node, { geometry, expression: 'nir', collections: ['none'] }), []);
      const nowhere = { type: 'Point', coordinates: [0, 0] };
      assert.deepEqual(await seriesOf(node, { geometry: nowhere, expression: 'nir' }), []);
    });
  });
}

test('dates and scenes with other pixel sizes count their own pixels', async (t) => {
  const node = await testNode(t, await tempFolder(t));
  const random = randomly(41);
  const pick = <T>(values: readonly T[]) => values[Math.floor(random() * values.length)]!;
  const cells = ['u26xu5', 'u26xuh'];
  const scenes = Array.from({ length: 24 }, (_, n) => ({ id: `s${n}`, day: Math.floor(n / 2) }));
  for (const [n, scene] of scenes.entries()) {
    // The second scene of a day has one of the cells, the first one both or one.
    const chosen = n % 2 === 1 || random() < 0.5 ? [pick(cells)] : cells;
    const side = pick([8, 16, 32, 64]);
    const tiles = chosen.map((geocode): GivenTile => {
      const pixels = Uint16Array.from({ length: side * side }, () =>
        random() < 0.3 ? 0 : 1 + random() * 999,
      );
      const mask = pixels.map((value) => (value === 0 ? 0 : pick([1, 1, 1, 2])));
      const bands = [{ name: 'red', pixels }];
      const group = { name: `${side}`, width: side, height: side, bands };
      return { geocode, groups: [group], mask: Uint8Array.from(mask) };
    });
    await storeScene(node.storage, { ...scene, tiles });
  }
  const sizes = new Set<number>();
  for (let n = 0; n < 20; n++) {
    const { west, south, east, north } = gridByName('geohash').bounds(pick(cells));
    const along = (a: number, b: number) => [random(), random()].sort().map((share) => a + share * (b - a));
    const [left, right] = along(west, east);
    const [bottom, top] = along(south, north);
    const inside = (lon: number, lat: number) => lon > left! && lon < right! && lat > bottom! && lat < top!;
    const geometry = { type: 'Polygon', coordinates: [ringOfBox(left!, bottom!, right!, top!)] };
    const found = await seriesOf(node, { geometry, expression: 'red' });
    for (const date of await naiveBySize(node, inside)) {
      const answer = found.find(({ datetime }) => datetime === date.datetime);
      if (date.pixels === 0) {
        assert.equal(answer, undefined);
        continue;
      }
      sizes.add(date.pixels);
      assert.deepEqual([answer?.valid, answer?.pixels], [date.values.length, date.pixels], date.datetime);
      if (date.values.length > 0)
        near(answer?.mean, date.values.reduce((a, b) => a + b, 0) / date.values.length);
    }
  }
  assert.ok(sizes.size > 20, `${sizes.size}`);
});

/** The band `red` in a part of one cell, by date: each pixel of the finest tile has the value of the first tile that is clear. */
async function naiveBySize(node: TilewrightNode, inside: (lon: number, lat: number) => boolean) {
  const read = async (tile: TileRecord) => {
    const [{ name, width: side }] = tile.groups;
    const [values] = (await readImage(node.storage.tileImage(tile, name))).bands;
    const [codes] = (await readImage(node.storage.tileImage(tile, 'mask'))).bands;
    const valueAt = (x: number, y: number) => {
      const at = Math.floor(y * side) * side + Math.floor(x * side);
      return codes![at] === 1 ? values![at] : undefined;
    };
    return { tile, side, valueAt };
  };
  const tiles = await Promise.all((await tilesOf(node)).map(read));
  return [...new Set(tiles.map(({ tile }) => tile.start))].map((start) => {
    const date = { datetime: new globalThis.Date(start).toISOString(), values: [] as number[], pixels: 0 };
    for (const geocode of new Set(tiles.map(({ tile }) => tile.geocode))) {
      const { west, south, east, north } = gridByName('geohash').bounds(geocode);
      const own = tiles.filter(({ tile }) => tile.start === start && tile.geocode === geocode);
      const finest = Math.max(0, ...own.map(({ side }) => side));
      for (let i = 0; i < finest * finest; i++) {
        const [x, y] = [((i % finest) + 0.5) / finest, (Math.floor(i / finest) + 0.5) / finest];
        if (!inside(west + x * (east - west), north - y * (north - south))) continue;
        date.pixels++;
        const value = own.map(({ valueAt }) => valueAt(x, y)).find((value) => value !== undefined);
        if (value !== undefined) date.values.push(value);
      }
    }
    return date;
  });
}
