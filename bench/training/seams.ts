/**
 * `seams`: the map of a region of 30 places, with and without halos: the steps between neighbouring pixels within tiles and across the
 * borders of tiles, and the CPU time of `predict`. Writes a picture of both maps.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { MIXED, writeSentinelLikeSeries } from '../../data-samples/index.js';
import { inProcessTransport } from '../../src/cli/cli-connection.js';
import { digits } from '../../src/cli/compare/index.js';
import { Client } from '../../src/client/index.js';
import { geohash } from '../../src/grid/index.js';
import { openNode, type TilewrightNode } from '../../src/node.js';
import { parseFilter, searchTiles } from '../../src/query/index.js';
import { readRaster } from '../../src/raster/index.js';
import { type BenchOptions, type BenchResult, median, result } from '../support/bench.js';
import { measureTree } from '../support/measure-tree.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { markdown } from './markdown.js';
import { DATES, extentOf } from './regions.js';

const COLLECTION = 'region';
const PRECISION = 5;
/** The cell in the north-western corner of the region. */
const CORNER = 'u26xg';
/** Pixels of 10 m: 30 whole cells and parts of 12 others. */
const SIZE = { width: 1900, height: 2400 };
const SEED = 7;
const EPOCHS: Record<string, number> = { ndvi: 10, ndmi: 2 };
const COMMAND = fileURLToPath(new URL('../../command/main.js', import.meta.url));
/** A date without cloud, whose maps are measured. */
const DATE = DATES[1]!.datetime;

interface Steps {
  inside: number;
  border: number;
}

interface Measured extends Steps {
  cpuSeconds: number[];
}

export async function benchSeams({ short, log }: BenchOptions): Promise<BenchResult[]> {
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const folder = mkdtempSync(join(BENCH_FOLDER, 'seams-'));
  const data = join(folder, 'data');
  const kinds = short ? ['ndvi'] : Object.keys(EPOCHS);
  try {
    await withNode(data, async (node) => {
      const client = new Client(inProcessTransport(node));
      await generate(client, folder);
      for (const model of kinds) {
        const epochs = short ? 2 : EPOCHS[model];
        await client.run('train', { model, mode: 'regional', fresh: false, epochs, seed: 1 });
        log(`${model}: trained`);
      }
    });
    const rows: string[][] = [];
    const results: BenchResult[] = [];
    for (const model of kinds) {
      const [without, withHalo] = await measure(data, model, short ? 1 : 3, log);
      const ratio = median(withHalo.cpuSeconds) / median(without.cpuSeconds);
      for (const [name, one] of [['alone', without] as const, ['with halo', withHalo] as const])
        rows.push([model, name, digits(one.inside), digits(one.border), digits(median(one.cpuSeconds))]);
      results.push(result(`${model}: CPU time of predict with halo over that without`, '', ratio, {}));
    }
    log(`\n${markdown(['model', 'tiles', 'inside', 'border', 'CPU s'], rows).join('\n')}\n`);
    return results;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function withNode<T>(data: string, work: (node: TilewrightNode) => Promise<T>): Promise<T> {
  const node = await openNode({ data, memory: 4e9, cores: 2, reserve: 0 });
  try {
    return await work(node);
  } finally {
    await node.close();
  }
}

async function generate(client: Client, folder: string): Promise<void> {
  const files = await writeSentinelLikeSeries(folder, {
    ...{ name: COLLECTION, dates: DATES.slice(0, 2), seed: SEED, swir16: true },
    ...{ region: MIXED, origin: extentOf(CORNER).origin, size: SIZE },
  });
  const href = files.map(({ path }) => path);
  const inputs = { href, collection: COLLECTION, precision: PRECISION, scale: 0.0001, maskBand: 5 };
  await client.run('ingest', inputs);
}

/** Predicts the tiles of a date in turn without and with halo, each of which replaces the tiles of the other. */
async function measure(
  data: string,
  model: string,
  rounds: number,
  log: (line: string) => void,
): Promise<[Measured, Measured]> {
  const measured: Measured[] = [];
  for (let round = 0; round < rounds; round++)
    for (const [i, flags] of [['--no-halo'], []].entries()) {
      const day = DATE.slice(0, 10);
      const args = [COMMAND, 'predict', model, '--data', data, '--datetime', day, ...flags];
      const { cpuSeconds } = await measureTree(process.execPath, args);
      log(`${model} ${flags[0] ?? ''}: ${digits(cpuSeconds)} CPU s`);
      measured[i] ??= { ...(await mapSteps(data, model, i === 0 ? 'alone' : 'halo')), cpuSeconds: [] };
      measured[i]!.cpuSeconds.push(cpuSeconds);
    }
  const [without, withHalo] = measured;
  return [without!, withHalo!];
}

/** Medians of the absolute differences between neighbouring pixels, in stored units of 0.0001. Writes a picture of the map. */
async function mapSteps(data: string, model: string, name: string): Promise<Steps> {
  return withNode(data, async (node) => {
    await drawMap(node, model, join(BENCH_FOLDER, `seams-${model}-${name}.webp`));
    const filter = parseFilter({ collections: [COLLECTION], source: 'predicted', datetime: DATE });
    const found = await node.storage.getTiles(searchTiles(node.storage.index, filter, { limit: 1000 }).ids);
    const tiles = new Map<string, { width: number; height: number; pixels: ArrayLike<number> }>();
    for (const tile of found.filter((one) => one.model?.id.startsWith(model))) {
      const group = tile.groups.find(({ role }) => role === 'data')!;
      const { bands } = await readRaster(node.storage.tilePath(tile, group.name));
      tiles.set(tile.geocode, { width: group.width, height: group.height, pixels: bands[0]! });
    }
    const inside: number[] = [];
    const border: number[] = [];
    const add = (to: number[], a: number, b: number) => {
      if (a !== NODATA && b !== NODATA) to.push(Math.abs(a - b));
    };
    for (const [geocode, { width, height, pixels }] of tiles) {
      for (let at = 0; at < width * height; at++) {
        if ((at + 1) % width !== 0) add(inside, pixels[at]!, pixels[at + 1]!);
        if (at + width < width * height) add(inside, pixels[at]!, pixels[at + width]!);
      }
      const { west, south, east, north } = geohash.bounds(geocode);
      const [x, y] = [(west + east) / 2, (south + north) / 2];
      const eastern = tiles.get(geohash.encode(x + east - west, y, PRECISION));
      if (eastern?.height === height)
        for (let row = 0; row < height; row++)
          add(border, pixels[(row + 1) * width - 1]!, eastern.pixels[row * eastern.width]!);
      const southern = tiles.get(geohash.encode(x, y - (north - south), PRECISION));
      if (southern?.width === width)
        for (let column = 0; column < width; column++)
          add(border, pixels[(height - 1) * width + column]!, southern.pixels[column]!);
    }
    return { inside: medianOf(inside), border: medianOf(border) };
  });
}

const NODATA = -32768;

/** Also for many numbers. */
const medianOf = (values: number[]): number => Float64Array.from(values).sort()[values.length >> 1]!;

/** Map tiles of the middle of the region: zoom level, and the column and row of the north-western one of 2 x 2. */
const MAP = { zoom: 12, column: 2218, row: 1428 };

async function drawMap(node: TilewrightNode, model: string, path: string): Promise<void> {
  const query = `source=predicted&datetime=${DATE.slice(0, 10)}&expression=${model}&rescale=0,0.9&colormap_name=viridis`;
  const places = [0, 1].flatMap((y) => [0, 1].map((x) => ({ x, y })));
  const images = await Promise.all(
    places.map(async ({ x, y }) => {
      const url = `/xyz/${COLLECTION}/${MAP.zoom}/${MAP.column + x}/${MAP.row + y}.png?${query}`;
      const { rawPayload } = await node.server.inject(url);
      return { input: rawPayload, left: 256 * x, top: 256 * y };
    }),
  );
  const blank = { width: 512, height: 512, channels: 3 as const, background: '#ffffff' };
  await sharp({ create: blank }).composite(images).webp({ quality: 90 }).toFile(path);
}
