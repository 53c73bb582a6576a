/** Maps without seams where neighbouring tiles are on different nodes. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { geohash } from '../../../src/grid/index.js';
import { createTransform, crsFromEpsg, readRaster } from '../../../src/raster/index.js';
import type { PredictResults } from '../../../src/training/index.js';
import { get, OPTIONS, resultsOf, type Server, Servers, startJob } from '../../jobs/servers.js';
import { noEtcd } from '../../support/etcd.js';
import { writeTestScene } from '../../support/scenes.js';

/** Nodes own all tiles of a cell of this precision. */
const SLOT_PRECISION = 4;
const SCENE = { width: 400, height: 300 };

interface Item {
  id: string;
  properties: Record<string, unknown>;
  assets: Record<string, { href: string; roles: string[] }>;
}

/** The stored pixels of the predicted tiles of a date, by geocode. */
async function layer(server: Server, folder: string) {
  const { features } = await get<{ features: Item[] }>(
    server,
    `/search?collections=test&limit=100&filter=${encodeURIComponent("source='predicted'")}`,
  );
  const tiles = new Map<string, { width: number; height: number; pixels: ArrayLike<number> }>();
  for (const { id, properties, assets } of features) {
    assert.equal(properties['model_halo'], undefined, id);
    const { href } = Object.values(assets).find(({ roles }) => roles.includes('data'))!;
    const path = join(folder, `${id}.tif`);
    const { pathname } = new URL(href);
    const answer = await fetch(server.url + pathname);
    await writeFile(path, Buffer.from(await answer.arrayBuffer()));
    const { header, bands } = await readRaster(path);
    tiles.set(`${properties['geocode']}`, { ...header, pixels: bands[0]! });
  }
  return tiles;
}

test('maps of tiles on different nodes have no seam', { skip: noEtcd }, async (t) => {
  const servers = await Servers.start(t);
  const [a, b, c] = servers.three;
  const toScene = createTransform(crsFromEpsg(4326), crsFromEpsg(32633));
  const { width } = geohash.cellSize(SLOT_PRECISION);
  // Scenes across the borders of slots.
  const href = await Promise.all(
    [43, 44, 45, 46, 47, 48].map((column, i) => {
      const [x, y] = toScene(column * width, 47.86);
      const origin = { x: Math.round(x) - 5 * SCENE.width, y: Math.round(y) };
      return writeTestScene(join(servers.folder, `s${i}.tif`), { ...SCENE, ...origin, seed: 1 + i });
    }),
  );
  const datetime = '2024-06-01T10:00:00Z';
  await resultsOf(a, await startJob(a, 'ingest', { href, datetime, ...OPTIONS }));
  await resultsOf(b, await startJob(b, 'train', { model: 'ndvi', mode: 'partitioned', epochs: 1 }));

  const steps: number[] = [];
  for (const halo of [false, true]) {
    const results = await resultsOf<PredictResults>(c, await startJob(c, 'predict', { model: 'ndvi', halo }));
    assert.ok(results.tiles > 0 && !results.partialHalos, JSON.stringify(results));
    const tiles = await layer(a, servers.folder);
    const border: number[] = [];
    for (const [geocode, { width: columns, height, pixels }] of tiles) {
      const { west, east, south, north } = geohash.bounds(geocode);
      const eastern = tiles.get(
        geohash.encode((3 * east - west) / 2, (south + north) / 2, OPTIONS.precision),
      );
      if (eastern?.height !== height) continue;
      for (let row = 0; row < height; row++) {
        const pair = [pixels[(row + 1) * columns - 1]!, eastern.pixels[row * eastern.width]!];
        if (pair.every((value) => value !== -32768)) border.push(Math.abs(pair[0]! - pair[1]!));
      }
    }
    assert.ok(border.length > 500, `${border.length}`);
    steps.push(border.sort((one, other) => one - other)[border.length >> 1]!);
  }
  const [alone, blended] = steps;
  assert.ok(blended! < alone! / 3, `${blended} with halo, ${alone} without`);
});
