/** Cloud and shadow in the cells of a scene, as an ingest finds them: the cloud of a shadow is often in another cell. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { gridByName } from '../../src/grid/index.js';
import { layOutCells } from '../../src/ingest/cloud/detect.js';
import { encodeCog, Mask, readImage } from '../../src/raster/index.js';
import { scoreCloud } from '../support/cloud-masks.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { plantClouds } from '../support/planted-clouds.js';
import { tempFolder } from '../support/temp.js';

const MOVE = { dx: -45, dy: 20 };
const SIZE = 600;
const NAMES = ['blue', 'green', 'red', 'nir', 'swir16', 'swir22', 'truth'];
/** Values of the last band. Pixels of tiles with other values are mixed ones. */
const TRUTH = { clear: 1000, cloud: 2000, shadow: 3000, unseen: 4000 };

/** Land of `SIZE` x `SIZE` planted pixels of 30 m in UTM, cut into `zoom` x `zoom` pixels. */
async function writePlanted(path: string, zoom: number): Promise<void> {
  const { bands, cloud, shadow } = plantClouds({ ...MOVE, seed: 5, clouds: 60, width: SIZE, height: SIZE });
  const truth = Float32Array.from(cloud, (is, at) => {
    const [x, y] = [(at % SIZE) - MOVE.dx, Math.floor(at / SIZE) - MOVE.dy];
    const isSeen = x >= 0 && y >= 0 && x < SIZE && y < SIZE;
    if (is === 1) return TRUTH.cloud;
    return shadow[at] === 0 ? TRUTH.clear : isSeen ? TRUTH.shadow : TRUTH.unseen;
  });
  const width = SIZE * zoom;
  const planes = [...Object.values(bands).map((band) => band.map((value) => value * 10_000)), truth];
  const file = encodeCog({
    ...{ width, height: width, dataType: 'uint16', epsg: 32633, nodata: 0, overviews: 'nearest' },
    bands: planes.map((plane) =>
      Uint16Array.from({ length: width * width }, (_, at) => {
        const row = Math.floor(Math.floor(at / width) / zoom);
        return Math.round(plane[row * SIZE + Math.floor((at % width) / zoom)]);
      }),
    ),
    transform: { originX: 500_000, originY: 5_300_000, pixelWidth: 30 / zoom, pixelHeight: 30 / zoom },
    bandTags: NAMES.map((description) => ({ description })),
  });
  await writeFile(path, file);
}

const CASES = [
  { name: 'geohash', zoom: 1, options: { precision: 5 } },
  { name: 'quadtile', zoom: 1, options: { grid: 'quadtile', precision: 12 } },
  { name: 'pixels of 10 m', zoom: 3, options: { precision: 5 } },
];
for (const { name, zoom, options } of CASES) {
  test(`shadows are found across cells: ${name}`, async (t) => {
    const folder = await tempFolder(t);
    const path = join(folder, 'planted.tif');
    await writePlanted(path, zoom);
    const node = await testNode(t, join(folder, 'data'));
    const bands = Object.fromEntries(NAMES.map((band, i) => [band, i + 1]));
    const { failed } = await ingest(node, {
      ...{ href: path, collection: 'planted', datetime: '2024-06-01', bands, scale: 1e-4, cloudTest: true },
      ...options,
    });
    assert.deepEqual(failed, []);
    const tiles = await tilesOf(node);
    assert.ok(tiles.length >= 9);
    const codes: number[] = [];
    const truth: number[] = [];
    for (const tile of tiles) {
      const [data] = tile.groups;
      const planted = await readImage(node.storage.tileImage(tile, data.name), [NAMES.indexOf('truth')]);
      const mask = await readImage(node.storage.tileImage(tile, 'mask'));
      for (const [at, value] of planted.bands[0].entries()) {
        if (!Object.values(TRUTH).includes(value)) continue;
        codes.push(mask.bands[0][at]);
        truth.push(value);
      }
      const found = [...(mask.bands[0] as Uint8Array)];
      const assessed = found.filter((code) => code !== Mask.nodata && code !== Mask.notAssessed);
      const cloudy = assessed.filter((code) => code === Mask.cloud).length;
      assert.ok(Math.abs((tile.cloudCover ?? NaN) - (100 * cloudy) / assessed.length) < 1e-9);
    }
    const f1 = (code: number, value: number) =>
      scoreCloud(
        Uint8Array.from(codes, (of) => Number(of === code)),
        Uint8Array.from(truth, (of) => Number(of === value)),
      ).f1;
    // Averaged pixels blur the edges of clouds.
    assert.ok(
      f1(Mask.cloud, TRUTH.cloud) > (zoom === 1 ? 0.98 : 0.95),
      `F1 of cloud ${f1(Mask.cloud, TRUTH.cloud)}`,
    );
    assert.ok(f1(Mask.shadow, TRUTH.shadow) > 0.9, `F1 of shadow ${f1(Mask.shadow, TRUTH.shadow)}`);
    const unseen = codes.filter((_, at) => truth[at] === TRUTH.unseen);
    assert.ok(unseen.length > 0);
    assert.ok(unseen.filter((code) => code === Mask.clear).length < 0.05 * unseen.length);
  });
}

// Boxes in degrees; the second and third cross the antimeridian.
const BOXES = [
  { west: 12, south: 48, east: 13.1, north: 48.4 },
  { west: 179.5, south: -17, east: -179.2, north: -16.6 },
  { west: 170, south: 60, east: -160, north: 71 },
] as const;
for (const name of ['geohash', 'quadtile'] as const) {
  for (const [i, { west, south, east, north }] of BOXES.entries()) {
    test(`cells of a scene lie in its raster as they lie on the Earth: ${name}, box ${i}`, () => {
      const grid = gridByName(name);
      const precision = (name === 'geohash' ? 5 : 11) - (i === 2 ? 2 : 0);
      const parts =
        west < east
          ? [[west, east]]
          : [
              [west, 180],
              [-180, east],
            ];
      const geocodes = parts.flatMap(([left, right]) => {
        const [x0, y0] = grid.fromLonLat(left, south);
        const [x1, y1] = grid.fromLonLat(right, north);
        return grid.cover({ west: x0, south: y0, east: x1, north: y1 }, precision);
      });
      for (const bytes of [1e9, 1e6, 1e4]) {
        const layout = layOutCells(grid, geocodes, { x: 20, y: 10 }, bytes);
        assert.ok(layout.bytes <= bytes);
        assert.equal(layout.bytes, 3 * layout.width * layout.height);
        const { width } = grid.cellSize(precision);
        for (const geocode of geocodes) {
          const part = layout.parts.get(geocode)!;
          assert.ok(part.left >= 0 && part.left + part.width <= layout.width);
          assert.ok(part.top >= 0 && part.top + part.height <= layout.height);
          const { west, south, north, east } = grid.bounds(geocode);
          const nextWest = east >= grid.extent.east - width / 2 ? grid.extent.west : east;
          const neighbours = [
            { x: nextWest + width / 2, y: (south + north) / 2, left: part.left + part.width, top: part.top },
            {
              x: (west + east) / 2,
              y: south - (north - south) / 2,
              left: part.left,
              top: part.top + part.height,
            },
          ];
          for (const { x, y, left, top } of neighbours) {
            const next = layout.parts.get(grid.encode(x, y, precision));
            if (next) assert.deepEqual([next.left, next.top], [left, top]);
          }
        }
      }
    });
  }
}
