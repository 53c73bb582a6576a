/**
 * `series`: NDVI of one pixel over 500 dates, by `POST /timeseries` of a node in this process: search, records, reading and
 * answer. No date is cloudy, so that all bands are read: the most work that there can be. Files are in the system's cache.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { computePixelGrids, geohash } from '../../src/grid/index.js';
import { openNode, type TilewrightNode } from '../../src/node.js';
import { encodeCog } from '../../src/raster/index.js';
import { type GroupRecord, type Storage, writeFileSynced } from '../../src/storage/index.js';
import { type BenchOptions, type BenchResult, median, result, spend } from '../support/bench.js';
import { BENCH_FOLDER } from '../support/scene.js';

const DATES = 500;
/** As many different images; dates take them in turn. */
const IMAGES = 8;
const DAY_MS = 86_400_000;

/** Cells as they are by default for two products: at 31 degrees north for Landsat, at 48 for Sentinel-2. */
const CELLS = [
  { name: '30 m, geohash 5', collection: 'landsat-like', geocode: 'dj3y9', pixel: 30 },
  { name: '10 m, geohash 5', collection: 'sentinel-like', geocode: 'u2d8j', pixel: 10 },
];

export async function benchSeries({ short, threads, log }: BenchOptions): Promise<BenchResult[]> {
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const folder = mkdtempSync(join(BENCH_FOLDER, 'series-'));
  const node = await openNode({ data: folder, memory: 256e6, cores: threads, reserve: 0 });
  const results: BenchResult[] = [];
  try {
    for (const cell of CELLS) {
      const dates = short ? 50 : DATES;
      log(`writing ${dates} dates of ${cell.name}`);
      const size = await writeDates(node.storage, cell, dates);
      const { wall, cpu } = await ask(node, cell, dates, short ? 5 : 21);
      log(`${cell.name}, ${size}: ${wall.map((time) => time.toFixed(0)).join(' ')} ms`);
      const name = `${dates} dates of a pixel, ${cell.name} (${size} px), less is better`;
      results.push(result(`${name}, p50`, 'ms', median(wall.slice(1))));
      results.push(result(`${name}, CPU of all threads, p50`, 'ms', median(cpu.slice(1))));
      results.push(result(`${name}, first request, threads not started`, 'ms', wall[0]));
    }
  } finally {
    await node.close();
    rmSync(folder, { recursive: true });
  }
  return results;
}

type Cell = (typeof CELLS)[number];

/** Milliseconds of requests for random pixels of the cell; less is better. */
async function ask(node: TilewrightNode, { collection, geocode }: Cell, dates: number, count: number) {
  const { west, south, east, north } = geohash.bounds(geocode);
  const wall: number[] = [];
  const cpu: number[] = [];
  let state = 1;
  const random = () => {
    state = (state * 16807) % 2147483647;
    return state / 2147483647;
  };
  for (let i = 0; i < count; i++) {
    const coordinates = [west + (east - west) * random(), south + (north - south) * random()];
    const payload = {
      geometry: { type: 'Point', coordinates },
      expression: 'ndvi',
      collections: [collection],
    };
    const request = () => node.server.inject({ method: 'POST', url: '/timeseries', payload });
    const { value: answer, wallSeconds, cpuSeconds } = await spend(request);
    wall.push(wallSeconds * 1000);
    cpu.push(cpuSeconds * 1000);
    const { series } = answer.json() as { series: { valid: number }[] };
    if (series?.filter(({ valid }) => valid === 1).length !== dates)
      throw new Error(`not all dates have a value: ${answer.body.slice(0, 300)}`);
  }
  return { wall, cpu };
}

/** One tile a date: blue, green, red and near infrared as of `writeScene`, and a mask that is clear. */
async function writeDates(storage: Storage, cell: Cell, dates: number): Promise<string> {
  const { geocode, collection, pixel } = cell;
  const [{ width, height }] = computePixelGrids(geohash, geocode, [{ x: pixel, y: pixel }]);
  const { west, south, east, north } = geohash.bounds(geocode);
  const image = { width, height, epsg: 4326, nodata: 0, overviews: 'nearest' as const };
  const transform = {
    originX: west,
    originY: north,
    pixelWidth: (east - west) / width,
    pixelHeight: (north - south) / height,
  };
  const files = Array.from({ length: IMAGES }, (_, seed) =>
    encodeCog({ ...image, transform, dataType: 'uint16', bands: bandsOf(width, height, seed + 1) }),
  );
  const mask = encodeCog({
    ...image,
    transform,
    dataType: 'uint8',
    bands: [new Uint8Array(width * height).fill(1)],
  });
  const names = ['blue', 'green', 'red', 'nir'];
  const group = `${pixel}m`;
  const record = (name: string, bytes: Buffer): GroupRecord => ({
    name,
    file: group,
    role: name === 'mask' ? 'mask' : 'data',
    dataType: name === 'mask' ? 'uint8' : 'uint16',
    width,
    height,
    nodata: 0,
    bands: (name === 'mask' ? ['mask'] : names).map((band) => ({
      name: band,
      ...(name !== 'mask' && { commonName: band }),
      scale: name === 'mask' ? 1 : 0.0001,
      offset: 0,
      validPercent: 100,
    })),
    bytes: bytes.length,
    crc32: crc32(bytes),
  });
  for (let date = 0; date < dates; date++) {
    const start = Date.UTC(2015, 0, 1) + date * 5 * DAY_MS;
    const wanted = {
      id: collection,
      title: collection,
      grid: 'geohash' as const,
      precision: geocode.length,
      license: 'various',
    };
    const write = await storage.beginScene(wanted, `date-${date}`, [geocode]);
    const staging = await write.stagingFolder(geocode);
    const file = files[date % IMAGES];
    await writeFileSynced(join(staging, `${group}.tif`), Buffer.concat([file, mask]));
    await write.publish([geocode]);
    const facts = { fingerprint: `${date}`, start, end: start, platform: null, warnings: [] };
    await write.commit(facts, [
      {
        id: write.tileId(geocode),
        collection,
        scene: write.scene,
        grid: 'geohash',
        geocode,
        version: write.version,
        source: 'raw',
        start,
        end: start,
        platform: null,
        coverage: 100,
        cloudCover: 0,
        groups: [record(group, file), record('mask', mask)],
        footprint: [],
        derivedFrom: [],
        createdAt: start,
      },
    ]);
  }
  return `${width} x ${height}`;
}

/** Fields with sensor noise: they compress about as real bands do, to six tenths. */
function bandsOf(width: number, height: number, seed: number): Uint16Array[] {
  let state = seed;
  const random = () => {
    state = (state * 16807) % 2147483647;
    return state / 2147483647;
  };
  return [600, 800, 700, 3000].map((base) =>
    Uint16Array.from({ length: width * height }, (_, i) => {
      const wave = Math.sin((i % width) / 9 + seed) * Math.cos(Math.floor(i / width) / 7);
      return base + wave * base * 0.3 + random() * 100;
    }),
  );
}
