/** Scenes across the antimeridian and around a pole: their tiles, Items, searches, maps and series, compared with exact gdalwarp. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import sharp from 'sharp';
import { type Bbox, type Grid, geohash, quadtile } from '../../src/grid/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { readImage } from '../../src/raster/index.js';
import { gdal, needsGdal } from '../raster/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { tempFolder } from '../support/temp.js';
import { around, gdalCell, SIDE, type Square, writeSquare } from './gdal-squares.js';

interface Case {
  name: string;
  square: Square;
  grid: Grid;
  precision: number;
  /** A box across the antimeridian whose cells are compared, and a point of the scene in it. */
  box: Bbox;
  at: [lon: number, lat: number];
}

const degrees = (x: number): Square => ({ epsg: 4326, x, y: 0, pixel: 20 / SIDE });

const CASES: Case[] = [
  {
    name: 'UTM zone 60 south',
    square: around(32760, 180, -17, 100),
    grid: geohash,
    precision: 4,
    box: [179.8, -17.2, -179.8, -16.8],
    at: [180, -17],
  },
  {
    name: 'UTM zone 1',
    square: around(32601, -180, 65, 100),
    grid: quadtile,
    precision: 10,
    box: [179.6, 64.8, -179.6, 65.2],
    at: [180, 65],
  },
  {
    name: '170 to 190 degrees',
    square: degrees(170),
    grid: geohash,
    precision: 2,
    box: [169, -21, -169, 1],
    at: [180, -10],
  },
  {
    name: '-190 to -170 degrees',
    square: degrees(-190),
    grid: geohash,
    precision: 2,
    box: [169, -21, -169, 1],
    at: [180, -10],
  },
  {
    name: 'polar stereographic around the pole',
    square: around(3413, 0, 90, 4000),
    grid: geohash,
    precision: 2,
    box: [168.75, 80, -168.75, 90],
    at: [180, 87],
  },
];

/** Rises by 100 from column to column and by 1 from row to row, so that a shift of one column shows. */
const ramp = (i: number) => 10 + 100 * (i % SIDE) + Math.floor(i / SIDE);
/** Bilinear and nearest pixels of the ramp differ by up to half of a column and half of a row. */
const TOLERANCE = 60;

async function ingestSquare(t: TestContext, { square, grid, precision }: Case) {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const path = join(folder, 'scene.tif');
  gdal('gdal_translate', '-q', await writeSquare(join(folder, 'source.tif'), square, ramp), path);
  const options = { collection: 'far', datetime: '2024-06-01T10:00:00Z', grid: grid.name, precision };
  const { failed } = await ingest(node, { href: path, ...options });
  assert.deepEqual(failed, []);
  return { folder, node, path };
}

/** Numbers of pixels that hold data in both images, that hold data in one of them, and that differ. */
function compare(got: ArrayLike<number>, wanted: ArrayLike<number>, tolerance: number) {
  const counts = { both: 0, one: 0, differ: 0 };
  for (let i = 0; i < wanted.length; i++) {
    if (got[i]! > 0 !== wanted[i]! > 0) counts.one++;
    else if (wanted[i]! > 0) {
      counts.both++;
      if (Math.abs(got[i]! - wanted[i]!) > tolerance) counts.differ++;
    }
  }
  return counts;
}

/** The cells of a box that crosses the antimeridian. */
function cellsOfBox({ grid, precision, box: [west, south, east, north] }: Case): string[] {
  const side = (from: number, to: number) => {
    const [x0, y0] = grid.fromLonLat(from, south);
    const [x1, y1] = grid.fromLonLat(to, north);
    return grid.cover({ west: x0, south: y0, east: x1, north: y1 }, precision);
  };
  return [...new Set([...side(west, 180 - 1e-9), ...side(-180, east)])];
}

for (const one of CASES) {
  const { name, square, grid, at } = one;
  test(`a scene in ${name} has all pixels on both sides of the antimeridian`, needsGdal, async (t) => {
    const { folder, node, path } = await ingestSquare(t, one);
    const out = join(folder, 'cell.tif');
    const tiles = await tilesOf(node);
    const byCell = new Map(tiles.map((tile) => [tile.geocode, tile]));
    const cells = cellsOfBox(one);
    for (const geocode of cells) {
      const tile = byCell.get(geocode);
      const { width = 64, height = 64, name: group = '' } = tile?.groups[0] ?? {};
      const wanted = await gdalCell(path, square, grid, grid.bounds(geocode), { width, height }, out);
      const got = tile
        ? (await readImage(node.storage.tileImage(tile, group))).bands[0]!
        : new Uint16Array(wanted.length);
      const { both, one: alone, differ } = compare(got, wanted, TOLERANCE);
      // Pixels along the edge of the scene.
      assert.ok(alone <= 2 * (width + height), `${geocode}: ${alone} pixels are in one image only`);
      assert.ok(differ <= 0.001 * both, `${geocode}: ${differ} of ${both} pixels differ`);
    }

    const search = async (bbox: Bbox) => {
      const url = `/search?collections=far&limit=1000&bbox=${bbox.join()}`;
      return (await node.server.inject(url)).json().features as Item[];
    };
    const [, south, , north] = one.box;
    const ids = (items: Item[]) => items.map(({ id }) => id).sort();
    const items = await search([170, south, -170, north]);
    const [eastern, western] = [
      await search([170, south, 180, north]),
      await search([-180, south, -170, north]),
    ];
    assert.ok(eastern.length > 0 && western.length > 0);
    for (const { bbox, geometry } of items) {
      const [west, , east] = bbox;
      // RFC 7946, section 3.1.9: an Item is a cell, and cells end at the antimeridian.
      assert.ok(west >= -180 && west < east && east <= 180, bbox.join());
      for (const [lon] of geometry.coordinates[0]!) assert.ok(lon! >= west && lon! <= east);
    }
    // Both are closed, so a box that ends at 180 degrees finds only cells of its side.
    assert.deepEqual(ids(items), ids([...eastern, ...western]));

    await compareMaps(node, folder, path, one);
    for (const lon of [at[0] - 0.01, -180 + 0.01]) await compareSeries(node, path, square, [lon, at[1]]);
  });
}

interface Item {
  id: string;
  bbox: Bbox;
  geometry: { coordinates: number[][][] };
}

/** The map tiles left and right of the antimeridian. The poles are beyond web maps. */
async function compareMaps(node: TilewrightNode, folder: string, path: string, { square, at }: Case) {
  const { extent } = quadtile;
  const zoom = square.epsg === 4326 ? 5 : square.epsg === 3413 ? 4 : 8;
  const count = 2 ** zoom;
  const side = (extent.east - extent.west) / count;
  const y = Math.floor((extent.north - quadtile.fromLonLat(0, Math.min(at[1], 85))[1]) / side);
  for (const x of [0, count - 1]) {
    const url = `/xyz/far/${zoom}/${x}/${y}.png?assets=b1&rescale=0,30600`;
    const answer = await node.server.inject(url);
    assert.equal(answer.statusCode, 200, answer.body);
    const { data } = await sharp(answer.rawPayload).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
    const west = extent.west + x * side;
    const north = extent.north - y * side;
    const bounds = { west, east: west + side, north, south: north - side };
    const size = { width: 256, height: 256 };
    const wanted = await gdalCell(path, square, quadtile, bounds, size, join(folder, 'map.tif'));
    const got = Array.from(wanted, (_, i) => (data[4 * i + 3] === 0 ? 0 : 1 + 120 * data[4 * i]!));
    const { both, one, differ } = compare(got, wanted, 400);
    assert.ok(both > 500, `${url}: ${both} pixels`);
    assert.ok(one < 1200 && differ <= 0.01 * both, `${url}: ${one}, ${differ} of ${both} pixels differ`);
  }
}

/** The value at a point, as the program of GDAL finds it in the scene. */
async function compareSeries(
  node: TilewrightNode,
  path: string,
  { epsg, x }: Square,
  point: [number, number],
) {
  const [lon, lat] = point;
  // A geographic raster has longitudes of one side only.
  const turned = epsg !== 4326 ? lon : x > 0 ? (lon + 360) % 360 : lon > 0 ? lon - 360 : lon;
  const wanted = Number(gdal('gdallocationinfo', '-valonly', '-wgs84', path, String(turned), String(lat)));
  const payload = { geometry: { type: 'Point', coordinates: point }, expression: 'b1' };
  const answer = await node.server.inject({ method: 'POST', url: '/timeseries', payload });
  const [{ value }] = answer.json().series;
  // The pixel of the tile and that of the scene have different centres.
  assert.ok(Math.abs(value - wanted) <= 150, `${point}: ${value} instead of ${wanted}`);
}
