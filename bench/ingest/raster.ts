/**
 * The steps of an ingest, over a whole band. Megapixels per CPU second of all threads; wall time on a shared machine says
 * little.
 * The peer is gdalwarp, which does the whole scene at once into one file: less work than a file for every cell.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WorkerPool } from '../../src/async/index.js';
import { geohash } from '../../src/grid/index.js';
import { createTransform, openRaster, type RasterHeader, type Resampling } from '../../src/raster/index.js';
import {
  type BenchOptions,
  type BenchResult,
  cpuSecondsOf,
  isInstalled,
  median,
  result,
  spend,
} from '../support/bench.js';
import { sceneFile } from '../support/scene.js';
import type { Done, Task } from './raster-worker.js';

const PRECISION = 5;
const CELL_PIXELS = 512;
/** Cells that one task warps. */
const BATCH = 8;
const UNIT = 'Mpx/CPU s';

type Pool = WorkerPool<Task, Done>;

/** CPU seconds by step, of one round. */
type Round = Record<string, number>;

export async function benchSteps({ short, threads, log }: BenchOptions): Promise<BenchResult[]> {
  const path = sceneFile(short ? 2745 : 10_980, log);
  const header = await openRaster(path);
  const geocodes = cellsOf(header);
  const pool: Pool = new WorkerPool(new URL('./raster-worker.js', import.meta.url), threads);
  const pixels = new SharedArrayBuffer(header.width * header.height * 2);
  const folder = mkdtempSync(join(tmpdir(), 'tilewright-bench-'));
  const withGdal = isInstalled('gdalwarp');
  if (!withGdal) log('gdalwarp is not installed: no peers');
  const ours: Round[] = [];
  const gdal: Round[] = [];
  let done: Done = { valid: 0, tiles: 0 };
  let wall = 0;
  try {
    for (let round = 0; round < (short ? 3 : 5); round++) {
      const { times, seconds, warped } = await oneRound(pool, header, pixels, geocodes, folder);
      done = warped;
      wall = seconds;
      ours.push(times);
      if (withGdal) gdal.push(gdalRound(path, geocodes, folder));
      log(`round ${round + 1}: ${JSON.stringify({ ours: times, gdal: gdal.at(-1) })}`);
    }
  } finally {
    await pool.close();
    rmSync(folder, { recursive: true });
  }

  const source = (header.width * header.height) / 1e6;
  const cells = done.valid / 1e6;
  const tiles = (done.tiles * CELL_PIXELS * CELL_PIXELS) / 1e6;
  const rate = (rounds: Round[], pixels: number, ...steps: string[]) =>
    median(rounds.map((times) => pixels / steps.reduce((sum, step) => sum + times[step], 0)));
  const peers = (pixels: number, step: string) =>
    withGdal ? { [GDAL_NAMES[step]]: rate(gdal, pixels, step) } : {};
  return [
    result('decode', UNIT, rate(ours, source, 'decode'), peers(source, 'decode')),
    result('warp nearest', UNIT, rate(ours, cells, 'nearest')),
    result('warp bilinear', UNIT, rate(ours, cells, 'bilinear')),
    result('warp bilinear, plain', UNIT, rate(ours, cells, 'plain')),
    result('write tiles', UNIT, rate(ours, tiles, 'write')),
    result('decode and warp nearest', UNIT, rate(ours, cells, 'decode', 'nearest'), peers(cells, 'nearest')),
    result(
      'decode and warp bilinear',
      UNIT,
      rate(ours, cells, 'decode', 'bilinear'),
      peers(cells, 'bilinear'),
    ),
    result('band into tiles', UNIT, rate(ours, cells, 'decode', 'bilinear', 'write'), peers(cells, 'tiles')),
    result('band into tiles, wall clock', 'Mpx/s', cells / wall),
    result('tiles', 'tiles', done.tiles),
    result('peak memory', 'MB', process.resourceUsage().maxRSS / 1024),
  ];
}

/** Cells that overlap the box around the scene, from north to south. */
function cellsOf(header: RasterHeader): string[] {
  const { originX, originY, xx, yy } = header.transform;
  const toLonLat = createTransform(header.crs, 'EPSG:4326');
  const points: [number, number][] = [];
  for (let i = 0; i <= 64; i++) {
    for (const [u, v] of [
      [i / 64, 0],
      [i / 64, 1],
      [0, i / 64],
      [1, i / 64],
    ] as const) {
      points.push(toLonLat(originX + u * xx * header.width, originY + v * yy * header.height));
    }
  }
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const box = {
    west: Math.min(...xs),
    east: Math.max(...xs),
    south: Math.min(...ys),
    north: Math.max(...ys),
  };
  return geohash.cover(box, PRECISION);
}

async function oneRound(
  pool: Pool,
  header: RasterHeader,
  pixels: SharedArrayBuffer,
  geocodes: string[],
  folder: string,
) {
  const decode = await spend(() => decodeAll(pool, header, pixels));
  const warpAll = (resampling: Resampling, simd: boolean, keep: boolean) => async (): Promise<Done> => {
    const tasks: Promise<Done>[] = [];
    for (let i = 0; i < geocodes.length; i += BATCH) {
      const batch = geocodes.slice(i, i + BATCH);
      tasks.push(pool.run({ kind: 'warp', header, pixels, geocodes: batch, resampling, simd, keep }));
    }
    return total(await Promise.all(tasks));
  };
  const nearest = await spend(warpAll('nearest', true, false));
  const plain = await spend(warpAll('bilinear', false, false));
  const bilinear = await spend(warpAll('bilinear', true, false));
  const kept = await warpAll('bilinear', true, true)();
  const write = await spend(async () =>
    total(await Promise.all(Array.from({ length: pool.threads }, () => pool.run({ kind: 'write', folder })))),
  );
  if (write.value.tiles !== kept.tiles) throw new Error('not all tiles were written');
  return {
    times: {
      decode: decode.cpuSeconds,
      nearest: nearest.cpuSeconds,
      plain: plain.cpuSeconds,
      bilinear: bilinear.cpuSeconds,
      write: write.cpuSeconds,
    },
    seconds: decode.wallSeconds + bilinear.wallSeconds + write.wallSeconds,
    warped: bilinear.value,
  };
}

async function decodeAll(pool: Pool, header: RasterHeader, pixels: SharedArrayBuffer): Promise<void> {
  const tasks: Promise<Done>[] = [];
  for (let rowStart = 0; rowStart < header.height; rowStart += header.blocks.height) {
    const rowEnd = Math.min(header.height, rowStart + header.blocks.height);
    tasks.push(pool.run({ kind: 'decode', header, rowStart, rowEnd, pixels }));
  }
  await Promise.all(tasks);
}

function total(parts: Done[]): Done {
  return parts.reduce((sum, { valid, tiles }) => ({ valid: sum.valid + valid, tiles: sum.tiles + tiles }), {
    valid: 0,
    tiles: 0,
  });
}

const GDAL_NAMES: Record<string, string> = {
  decode: 'gdal_translate to raw',
  nearest: 'gdalwarp to raw',
  bilinear: 'gdalwarp to raw',
  tiles: 'gdalwarp to one deflate GeoTIFF',
};

/** The same pixels by GDAL: the box of all cells at their resolution. */
function gdalRound(path: string, geocodes: string[], folder: string): Round {
  const bounds = geocodes.map((geocode) => geohash.bounds(geocode));
  const west = Math.min(...bounds.map((cell) => cell.west));
  const east = Math.max(...bounds.map((cell) => cell.east));
  const south = Math.min(...bounds.map((cell) => cell.south));
  const north = Math.max(...bounds.map((cell) => cell.north));
  const { width, height } = geohash.cellSize(PRECISION);
  const size = [
    Math.round((east - west) / width) * CELL_PIXELS,
    Math.round((north - south) / height) * CELL_PIXELS,
  ];
  const grid = [
    '-t_srs',
    'EPSG:4326',
    '-te',
    ...[west, south, east, north].map(String),
    '-ts',
    ...size.map(String),
  ];
  const out = join(folder, 'gdal');
  const warp = (method: string, ...format: string[]) => {
    const seconds = cpuSecondsOf('gdalwarp', [
      '-q',
      '-overwrite',
      '-r',
      method,
      ...grid,
      ...format,
      path,
      out,
    ]);
    rmSync(out);
    return seconds;
  };
  const raw = ['-of', 'ENVI'];
  const deflate = ['-of', 'GTiff', '-co', 'TILED=YES', '-co', 'BLOCKXSIZE=512', '-co', 'BLOCKYSIZE=512'];
  deflate.push('-co', 'COMPRESS=DEFLATE', '-co', 'PREDICTOR=2', '-co', 'ZLEVEL=1');
  return {
    decode: cpuSecondsOf('gdal_translate', ['-q', ...raw, path, '/vsimem/out']),
    nearest: warp('near', ...raw),
    bilinear: warp('bilinear', ...raw),
    tiles: warp('bilinear', ...deflate),
  };
}
