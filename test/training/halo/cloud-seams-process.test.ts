/** A job that removes cloud from neighbouring cells, whose fills do not differ at the border. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { PAIR_DATES, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import { geohash } from '../../../src/grid/index.js';
import type { TilewrightNode } from '../../../src/node.js';
import { Mask, readRaster } from '../../../src/raster/index.js';
import type { TileRecord } from '../../../src/storage/index.js';
import type { PredictResults } from '../../../src/training/index.js';
import { putModel } from '../../support/models.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';

const predict = (node: TilewrightNode, inputs: object) =>
  runProcess<PredictResults>(node, 'predict', { model: 'cloud-removal', ...inputs });

/** Reads the first band and the mask of a cloud-free tile. */
async function read(node: TilewrightNode, tile: TileRecord) {
  const group = tile.groups.find(({ role }) => role === 'data')!;
  const [pixels] = (await readRaster(node.storage.tilePath(tile, group.name))).bands;
  const [mask] = (await readRaster(node.storage.tilePath(tile, 'mask'))).bands;
  return { width: group.width, height: group.height, pixels: pixels!, mask: mask! };
}

/** Returns the geocode of the cell in the east. */
function easternOf(geocode: string): string {
  const { west, south, east, north } = geohash.bounds(geocode);
  return geohash.encode((3 * east - west) / 2, (south + north) / 2, geocode.length);
}

/** Returns the median difference of filled pixels on both sides of the border between two cells, and their number. */
async function borderStep(node: TilewrightNode, western: string): Promise<{ step: number; count: number }> {
  const tiles = (await tilesOf(node)).filter(({ source }) => source === 'cloud-free');
  const [a, b] = await Promise.all(
    [western, easternOf(western)].map((cell) => read(node, tiles.find(({ geocode }) => geocode === cell)!)),
  );
  const steps: number[] = [];
  for (let row = 0; row < a!.height; row++) {
    const [last, first] = [(row + 1) * a!.width - 1, row * b!.width];
    if (a!.mask[last] === Mask.filled && b!.mask[first] === Mask.filled)
      steps.push(Math.abs(a!.pixels[last]! - b!.pixels[first]!));
  }
  return { step: steps.sort((x, y) => x - y)[steps.length >> 1]!, count: steps.length };
}

it('fills the clouds at a border without a step, and again if a neighbour has another date', {
  timeout: 120_000,
}, async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const series = await writeSentinelLikeSeries(join(folder, 'scenes'), {
    ...{ size: { width: 800, height: 300 }, dates: PAIR_DATES },
  });
  const takeIn = async (dates: typeof series) => {
    for (const { path } of dates)
      await ingest(node, { href: path, collection: 's', scale: 0.0001, maskBand: 5 });
  };
  await takeIn(series.slice(0, 3));
  const filter = { datetime: PAIR_DATES[2]!.datetime };
  const tiles = (await tilesOf(node)).filter((tile) => tile.start === Date.parse(filter.datetime));
  const pairs = tiles.flatMap((tile) => {
    const eastern = tiles.find(({ geocode }) => geocode === easternOf(tile.geocode));
    return eastern
      ? [{ cells: [tile, eastern] as const, cloud: tile.cloudCover! + eastern.cloudCover! }]
      : [];
  });
  const [{ cells }] = pairs.sort((a, b) => b.cloud - a.cloud) as [(typeof pairs)[number]];
  for (const cell of cells) await putModel(node.storage, [cell], { model: 'cloud-removal' });
  const [{ geocode }] = cells;

  const alone = await predict(node, { filter, halo: false });
  const seam = await borderStep(node, geocode);
  assert.deepEqual(await predict(node, { filter, halo: false }).then((one) => one.unchanged), alone.tiles);
  const blended = await predict(node, { filter });
  assert.deepEqual([alone.tiles, blended.tiles, blended.partialHalos], [2, 2, 0]);
  const none = await borderStep(node, geocode);
  assert.ok(none.count > 50 && none.count === seam.count, `${none.count}`);
  assert.ok(none.step < 0.7 * seam.step, `${none.step} ${seam.step}`);

  assert.equal((await predict(node, { filter })).unchanged, 2);
  await takeIn(series.slice(3));
  assert.equal((await predict(node, { filter })).tiles, 2);
});
