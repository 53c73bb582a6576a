/** A job that removes cloud from neighbouring cells, whose fills do not differ at the border. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { PAIR_DATES, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import { cellSizeMetres, geohash } from '../../../src/grid/index.js';
import type { TilewrightNode } from '../../../src/node.js';
import { Mask, readImage } from '../../../src/raster/index.js';
import type { TileRecord } from '../../../src/storage/index.js';
import type { PredictResults } from '../../../src/training/index.js';
import { putModel } from '../../support/models.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';

const predict = (node: TilewrightNode, inputs: object) =>
  runProcess<PredictResults>(node, 'predict', { model: 'cloud-removal', ...inputs });

/** Reads the red band and the mask of a tile. */
async function read(node: TilewrightNode, tile: TileRecord) {
  const group = tile.groups.find(({ role }) => role === 'data')!;
  const red = group.bands.findIndex(({ commonName }) => commonName === 'red');
  const [pixels] = (await readImage(node.storage.tileImage(tile, group.name), [red])).bands;
  const [mask] = (await readImage(node.storage.tileImage(tile, 'mask'))).bands;
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
    if (a!.mask[last] === Mask.estimated && b!.mask[first] === Mask.estimated)
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

for (const halo of [true, false]) {
  it(`fills the rims of clouds up to the distance of --dilate, ${halo ? 'with' : 'without'} a halo`, {
    timeout: 120_000,
  }, async (t) => {
    const folder = await tempFolder(t);
    const node = await testNode(t, join(folder, 'data'));
    const series = await writeSentinelLikeSeries(join(folder, 'scenes'), {
      ...{ size: { width: 500, height: 300 }, dates: PAIR_DATES },
    });
    for (const { path } of series)
      await ingest(node, { href: path, collection: 's', scale: 0.0001, maskBand: 5 });
    const filter = { datetime: PAIR_DATES[2]!.datetime };
    const [cloudy] = (await tilesOf(node))
      .filter((tile) => tile.start === Date.parse(filter.datetime))
      .sort((a, b) => b.cloudCover! - a.cloudCover!);
    await putModel(node.storage, [cloudy!], { model: 'cloud-removal' });
    const raw = await read(node, cloudy!);
    const { width, height } = cellSizeMetres(geohash, cloudy!.geocode);
    const shares: number[] = [];
    for (const dilate of [0, 5, 90]) {
      const { tiles, rims } = await predict(node, { filter, halo, dilate });
      assert.equal(tiles, 1);
      const [made] = (await tilesOf(node)).filter(({ source }) => source === 'cloud-free');
      const { mask, pixels } = await read(node, made!);
      const reach = dilate === 0 ? 0 : Math.max(1, (dilate * raw.width) / width);
      const down = dilate === 0 ? 0 : Math.max(1, (dilate * raw.height) / height);
      const replaced = { clear: 0, replaced: 0 };
      for (const [at, code] of raw.mask.entries()) {
        const isCloud = (x: number, y: number) =>
          x >= 0 && x < raw.width && raw.mask[y * raw.width + x] === Mask.cloud;
        let isNear = code === Mask.cloud;
        const [column, row] = [at % raw.width, Math.floor(at / raw.width)];
        for (let y = -Math.floor(down); y <= down && !isNear && reach > 0; y++)
          for (let x = -Math.floor(reach); x <= reach && !isNear; x++)
            isNear = (x / reach) ** 2 + (y / down) ** 2 <= 1 && isCloud(column + x, row + y);
        if (code === Mask.clear) replaced.clear++;
        if (code === Mask.clear && isNear) replaced.replaced++;
        assert.equal(
          mask[at],
          isNear && code !== Mask.nodata ? Mask.estimated : code,
          `pixel ${column}, ${row}`,
        );
        if (!isNear) assert.equal(pixels[at], raw.pixels[at]);
      }
      assert.deepEqual(rims, replaced);
      shares.push(replaced.replaced);
      assert.equal((await predict(node, { filter, halo, dilate })).unchanged, 1);
    }
    assert.ok(shares[0] === 0 && shares[1]! > 0 && shares[2]! > 2 * shares[1]!, shares.join());
  });
}
