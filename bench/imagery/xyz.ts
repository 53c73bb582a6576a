/**
 * `xyz`: random map tiles of one stored COG, ours and titiler's in turn, both over HTTP to one client, with the same range
 * of values. tilewright also finds the tile, reads its mask and makes the mosaic; titiler receives the path of the file.
 */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { toArray } from '../../src/async/index.js';
import { localQueries } from '../../src/dht/index.js';
import { cellBbox, geohash, quadtile } from '../../src/grid/index.js';
import { ImageService } from '../../src/imagery/index.js';
import { openNode, type TilewrightNode } from '../../src/node.js';
import { TileFinder } from '../../src/query/index.js';
import { gdalName } from '../../src/raster/index.js';
import type { TileRecord } from '../../src/storage/index.js';
import { type BenchOptions, type BenchResult, median, result } from '../support/bench.js';
import { BENCH_FOLDER, sceneFile } from '../support/scene.js';
import { startTitiler } from './titiler.js';

const ZOOMS = [12, 13, 14, 15];
const RESCALE = '0,4000';

export async function benchXyz({ short, threads, log }: BenchOptions): Promise<BenchResult[]> {
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const folder = mkdtempSync(join(BENCH_FOLDER, 'xyz-'));
  const scene = sceneFile(short ? 2745 : 5490, log);
  const node = await openNode({
    data: folder,
    memory: 512e6,
    cores: threads,
    reserve: 0,
    allowFolders: [BENCH_FOLDER],
  });
  const titiler = await startTitiler(log);
  try {
    const tile = await ingestLargest(node, scene);
    const [group] = tile.groups;
    log(`${tile.id}: ${group.width} x ${group.height} px, ${tile.coverage.toFixed(0)} % of it data`);
    const url = await node.listen('127.0.0.1', 0);
    const file = encodeURIComponent(gdalName(node.storage.tileImage(tile, group.name)));
    const addresses: Record<string, (at: string) => string> = {
      ours: (at) => `${url}/xyz/bench/${at}.png?assets=${group.name}&bidx=1&rescale=${RESCALE}`,
    };
    if (titiler)
      addresses.titiler = (at) =>
        `${titiler.url}/cog/tiles/WebMercatorQuad/${at}.png?url=${file}&bidx=1&rescale=${RESCALE}`;
    const tiles = randomTiles(tile, short ? 40 : 200);
    const warm = randomTiles(tile, 10, 7);
    for (const address of Object.values(addresses)) for (const at of warm) await load(address(at));
    const times: Record<string, number[]> = Object.fromEntries(
      Object.keys(addresses).map((name) => [name, []]),
    );
    let bytes = 0;
    for (const at of tiles) {
      for (const [name, address] of Object.entries(addresses)) {
        const { milliseconds, length } = await load(address(at));
        times[name].push(milliseconds);
        if (name === 'ours') bytes += length;
      }
    }
    const alone = await withoutCache(node, tile, tiles, threads);
    const quantile = (values: number[], share: number) =>
      values.toSorted((a, b) => a - b)[Math.floor(values.length * share)];
    const peers = (of: (values: number[]) => number) =>
      titiler ? { [`titiler ${titiler.version}`]: of(times.titiler) } : {};
    const p95 = (values: number[]) => quantile(values, 0.95);
    return [
      result('map tile p50, less is better', 'ms', median(times.ours), peers(median)),
      result('map tile p95, less is better', 'ms', p95(times.ours), peers(p95)),
      result('the same p50, no block kept from earlier requests, without HTTP', 'ms', median(alone)),
      result('map tiles', 'tiles', tiles.length),
      result('mean size', 'kB', bytes / tiles.length / 1e3),
    ];
  } finally {
    titiler?.stop();
    await node.close();
    rmSync(folder, { recursive: true });
  }
}

/** One large cell, so that its file has overviews like the files of any COG server. */
async function ingestLargest(node: TilewrightNode, scene: string): Promise<TileRecord> {
  const headers = { authorization: `Bearer ${node.ownerSecret}` };
  const payload = {
    href: scene,
    collection: 'bench',
    datetime: '2024-06-01T10:00:00Z',
    precision: 4,
    nodata: 0,
  };
  const answer = await node.server.inject({ method: 'POST', url: '/ingest', headers, payload });
  for (const { jobID } = answer.json() as { jobID: string }; ; ) {
    const job = (await node.server.inject(`/jobs/${jobID}`)).json() as { status: string; error?: object };
    if (job.status === 'successful') break;
    if (job.status === 'failed') throw new Error(JSON.stringify(job.error));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const tiles = await toArray(node.storage.catalogue.tiles.values());
  return tiles.toSorted((a, b) => b.coverage - a.coverage)[0];
}

/** Addresses z/x/y of map tiles that are completely inside a tile's cell. */
function randomTiles(tile: TileRecord, count: number, seed = 42): string[] {
  const [west, south, east, north] = cellBbox(geohash, tile.geocode);
  const { extent } = quadtile;
  const [left, bottom] = quadtile.fromLonLat(west, south);
  const [right, top] = quadtile.fromLonLat(east, north);
  let state = seed;
  const below = (limit: number) => {
    state = (state * 16807) % 2147483647;
    return Math.floor((state / 2147483647) * limit);
  };
  return Array.from({ length: count }, (_, i) => {
    const z = ZOOMS[i % ZOOMS.length];
    const side = (extent.east - extent.west) / 2 ** z;
    const first = Math.ceil((left - extent.west) / side);
    const columns = Math.floor((right - extent.west) / side) - first;
    const upper = Math.ceil((extent.north - top) / side);
    const rows = Math.floor((extent.north - bottom) / side) - upper;
    return `${z}/${first + below(columns)}/${upper + below(rows)}`;
  });
}

async function load(url: string): Promise<{ milliseconds: number; length: number }> {
  const started = performance.now();
  const answer = await fetch(url);
  const body = await answer.arrayBuffer();
  const milliseconds = performance.now() - started;
  if (!answer.ok) throw new Error(`${url}: ${Buffer.from(body).toString()}`);
  return { milliseconds, length: body.byteLength };
}

async function withoutCache(
  node: TilewrightNode,
  tile: TileRecord,
  tiles: string[],
  cores: number,
): Promise<number[]> {
  const { storage } = node;
  const owners = localQueries(storage.index);
  const finder = new TileFinder(storage, owners);
  const imagery = new ImageService({ storage, finder, owners, cores, cacheBytes: 0 });
  const collection = (await storage.catalogue.collections.get(tile.collection))!;
  const times: number[] = [];
  try {
    for (const at of [tiles[0], ...tiles]) {
      const [z, x, y] = at.split('/').map(Number);
      const renderParams = { assets: [tile.groups[0].name], bidx: [1], rescale: [RESCALE] };
      const started = performance.now();
      await imagery.mapTile({
        collection,
        filter: { op: '=', property: 'source', value: 'raw' },
        source: 'raw',
        renderParams,
        tile: { z, x, y },
        size: 256,
        format: 'png',
      });
      times.push(performance.now() - started);
    }
  } finally {
    await imagery.close();
  }
  return times.slice(1);
}
