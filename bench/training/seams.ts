/**
 * `seams`: the map of a region of 30 places, with and without halos: the steps between neighbouring pixels within tiles and across the
 * borders of tiles, and the CPU time of `predict`. Writes pictures of the maps of indices. For cloud removal, a cloudy date, and the steps
 * between filled pixels, less those of the next date, which has no cloud. TILEWRIGHT_BENCH_ONLY=ndvi for one model, or several with commas.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { MIXED, writeSentinelLikeSeries } from '../../data-samples/index.js';
import { digits } from '../../src/cli/compare/measures.js';
import { inProcessTransport } from '../../src/cli/connection.js';
import { Client } from '../../src/client/index.js';
import { geohash } from '../../src/grid/index.js';
import { openNode, type TilewrightNode } from '../../src/node.js';
import { parseFilter, searchTiles } from '../../src/query/index.js';
import { Mask, readImage } from '../../src/raster/index.js';
import type { Storage, TileRecord } from '../../src/storage/index.js';
import { type BenchOptions, type BenchResult, median, result } from '../support/bench.js';
import { measureTree } from '../support/measure-tree.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { markdown } from './markdown.js';
import { DATES, extentOf } from './regions.js';

const COLLECTION = 'region';
const PRECISION = 5;
/** The cell in the north-western corner of the region. */
const CORNER = 'u26xg';
/** Pixels of 10 m: 30 whole cells and parts of 12 others; six cells with --short. */
const SIZE = { width: 1900, height: 2400 };
const SHORT_SIZE = { width: 1080, height: 1020 };
const SEED = 7;

interface Kind {
  epochs: number;
  /** The mode of the training and its inputs for this mode. */
  training: object;
  source: 'predicted' | 'cloud-free';
  /** The date whose tiles are measured. */
  date: string;
  /** A later date without cloud, whose land is subtracted. */
  land?: string;
  /** Number of dates of the region. */
  dates: number;
}

const REGIONAL = { mode: 'regional', fresh: false };
/** The second date has no cloud; a cloudy date between others has a prior. */
const MAP = { training: REGIONAL, source: 'predicted' as const, date: DATES[1]!.datetime, dates: 2 };
const KINDS: Record<string, Kind> = {
  ndvi: { ...MAP, epochs: 10 },
  ndmi: { ...MAP, epochs: 2 },
  'cloud-removal': {
    ...{ training: {}, epochs: 1, source: 'cloud-free', dates: 6 },
    ...{ date: DATES[2]!.datetime, land: DATES[3]!.datetime },
  },
};
const COMMAND = fileURLToPath(new URL('../../command/main.js', import.meta.url));
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
  const only = process.env.TILEWRIGHT_BENCH_ONLY?.split(',');
  const kinds = only ?? (short ? ['ndvi'] : Object.keys(KINDS));
  try {
    const rows: string[][] = [];
    const results: BenchResult[] = [];
    let dates = 0;
    for (const model of kinds) {
      const kind = KINDS[model]!;
      const from = dates;
      await withNode(data, async (node) => {
        const client = new Client(inProcessTransport(node));
        if (kind.dates > from) await generate(client, folder, from, kind.dates, short);
        const epochs = short ? Math.min(2, kind.epochs) : kind.epochs;
        await client.run('train', { model, ...kind.training, epochs, seed: 1 });
        log(`${model}: trained`);
      });
      dates = Math.max(dates, kind.dates);
      const [without, withHalo] = await measure(data, model, short, log);
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

/** Adds the dates `from` to `to`. */
async function generate(
  client: Client,
  folder: string,
  from: number,
  to: number,
  short: boolean,
): Promise<void> {
  const files = await writeSentinelLikeSeries(folder, {
    ...{ name: COLLECTION, dates: DATES.slice(0, to), seed: SEED, swir16: true },
    ...{ region: MIXED, origin: extentOf(CORNER).origin, size: short ? SHORT_SIZE : SIZE },
  });
  const href = files.slice(from).map(({ path }) => path);
  const inputs = { href, collection: COLLECTION, precision: PRECISION, scale: 0.0001, maskBand: 5 };
  await client.run('ingest', inputs);
}

/** Predicts the tiles of a date in turn without and with halo, each of which replaces the tiles of the other. */
async function measure(
  data: string,
  model: string,
  short: boolean,
  log: (line: string) => void,
): Promise<[Measured, Measured]> {
  const measured: Measured[] = [];
  const kind = KINDS[model]!;
  for (let round = 0; round < (short ? 1 : 3); round++)
    for (const [i, flags] of [['--no-halo'], []].entries()) {
      const day = kind.date.slice(0, 10);
      const args = [COMMAND, 'predict', model, '--data', data, '--datetime', day, ...flags];
      const { cpuSeconds } = await measureTree(process.execPath, args);
      log(`${model} ${flags[0] ?? ''}: ${digits(cpuSeconds)} CPU s`);
      const picture = join(BENCH_FOLDER, `seams-${model}-${i === 0 ? 'alone' : 'halo'}.webp`);
      measured[i] ??= {
        ...(await withNode(data, async (node) => {
          if (kind.source === 'predicted' && !short) await drawMap(node, model, kind.date, picture);
          return mapSteps(node, model, kind);
        })),
        cpuSeconds: [],
      };
      measured[i]!.cpuSeconds.push(cpuSeconds);
    }
  const [without, withHalo] = measured;
  return [without!, withHalo!];
}

/**
 * Medians of the absolute differences between neighbouring pixels of the first band, in stored units of 0.0001: of all pixels with data, or
 * of filled ones, less the land under them.
 */
async function mapSteps({ storage }: TilewrightNode, model: string, kind: Kind): Promise<Steps> {
  const { source, date, land } = kind;
  const tilesOf = async (source: 'raw' | Kind['source'], datetime: string) => {
    const filter = parseFilter({ collections: [COLLECTION], source, datetime });
    return storage.getTiles((await searchTiles(storage.index, filter, { limit: 1000 })).ids);
  };
  const found = await tilesOf(source, date);
  const lands = new Map(land ? (await tilesOf('raw', land)).map((tile) => [tile.geocode, tile]) : []);
  const tiles = new Map<string, { width: number; height: number; pixels: ArrayLike<number> }>();
  for (const tile of found.filter((one) => one.model?.id.startsWith(model))) {
    const group = tile.groups.find(({ role }) => role === 'data')!;
    const [stored] = (await readImage(storage.tileImage(tile, group.name))).bands;
    const [mask] = (await readImage(storage.tileImage(tile, 'mask'))).bands;
    const isFilled = (at: number) => source === 'predicted' || mask![at] === Mask.estimated;
    const under = lands.get(tile.geocode);
    const red = under && (await readRed(storage, under));
    const pixels = Int32Array.from(stored!, (value, at) =>
      isFilled(at) && value !== NODATA ? value - (red?.[at] ?? 0) : NODATA,
    );
    tiles.set(tile.geocode, { width: group.width, height: group.height, pixels });
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
}

/** Returns the stored values of the first band of the models. */
async function readRed(storage: Storage, tile: TileRecord): Promise<ArrayLike<number>> {
  const group = tile.groups.find(({ bands }) => bands.some(({ commonName }) => commonName === 'red'))!;
  const band = group.bands.findIndex(({ commonName }) => commonName === 'red');
  return (await readImage(storage.tileImage(tile, group.name), [band])).bands[0]!;
}

const NODATA = -32768;

/** Also for many numbers. */
const medianOf = (values: number[]): number => Float64Array.from(values).sort()[values.length >> 1]!;

/** Map tiles of the middle of the region: zoom level, and the column and row of the north-western one of 2 x 2. */
const PICTURE = { zoom: 12, column: 2218, row: 1428 };

async function drawMap(node: TilewrightNode, model: string, date: string, path: string): Promise<void> {
  const query = `source=predicted&datetime=${date.slice(0, 10)}&expression=${model}&rescale=0,0.9&colormap_name=viridis`;
  const places = [0, 1].flatMap((y) => [0, 1].map((x) => ({ x, y })));
  const images = await Promise.all(
    places.map(async ({ x, y }) => {
      const url = `/xyz/${COLLECTION}/${PICTURE.zoom}/${PICTURE.column + x}/${PICTURE.row + y}.png?${query}`;
      const { rawPayload } = await node.server.inject(url);
      return { input: rawPayload, left: 256 * x, top: 256 * y };
    }),
  );
  const blank = { width: 512, height: 512, channels: 3 as const, background: '#ffffff' };
  await sharp({ create: blank }).composite(images).webp({ quality: 90 }).toFile(path);
}
