/** The tiles around a tile, from which methods read the pixels around a pixel. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { localQueries } from '../../src/dht/index.js';
import { gridByName } from '../../src/grid/index.js';
import { findNeighbourSpectra, tileSpectrum } from '../../src/hyperspectral/tile-spectrum.js';
import { TileFinder } from '../../src/query/index.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

test('cells left and right of the antimeridian are neighbours', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const [width, height] = [64, 32];
  const bands = Array.from({ length: 16 }, (_, band) => new Uint16Array(width * height).fill(band + 1));
  const place = { epsg: 4326, x: 179.99, y: 0.005, pixel: 0.02 / width, width, height };
  const href = await writeRaster(join(folder, 'cube.tif'), { bands, ...place });
  for (const [grid, precision] of [
    ['geohash', 6],
    ['quadtile', 15],
  ] as const) {
    const options = { collection: grid, grid, precision, datetime: '2024-06-01', wavelengths: [400, 1000] };
    assert.deepEqual((await ingest(node, { href, ...options })).failed, []);
    const { extent } = gridByName(grid);
    const tiles = (await tilesOf(node)).filter(({ collection }) => collection === grid);
    const finder = new TileFinder(node.storage, localQueries(node.storage.index));
    const boundsOf = ({ geocode }: { geocode: string }) => gridByName(grid).bounds(geocode);
    const around = (edge: 'west' | 'east') =>
      findNeighbourSpectra(
        finder,
        tiles.find((tile) => boundsOf(tile)[edge] === extent[edge])!,
        3,
        (tile) => tileSpectrum(tile) ?? undefined,
      );
    for (const [edge, other, step] of [
      ['east', 'west', 1],
      ['west', 'east', -1],
    ] as const) {
      const found = await around(edge);
      const across = found.filter(({ tile }) => boundsOf(tile)[other] === extent[other]);
      assert.ok(across.length > 0, `${grid}: nothing across the ${edge} edge`);
      for (const { east } of across) assert.equal(east, step);
      assert.ok(found.every(({ east, south }) => Math.abs(east) <= 1 && Math.abs(south) <= 1));
    }
  }
});
