/**
 * A whole Sentinel-2 tile into geohash-5 tiles by the real command, beside the best that GDAL does: CPU seconds of all processes,
 * start-up, checksums and syncing included.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeSafe } from '../../data-samples/index.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import type { Scene } from '../../src/ingest/scene.js';
import { openRaster } from '../../src/raster/index.js';
import { type BenchOptions, type BenchResult, median, result } from '../support/bench.js';
import { measureTree, type TreeCost } from '../support/measure-tree.js';
import { BENCH_FOLDER, bandFile } from '../support/scene.js';

const COMMAND = fileURLToPath(new URL('../../command/main.js', import.meta.url));
const ROWS_SCRIPT = fileURLToPath(new URL('../../../bench/ingest/gdal_rows.py', import.meta.url));
/** Debian's own, for which its package python3-gdal is. */
export const PYTHON = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3';
/** Number of tiles for which one gdalwarp each is measured. */
const SAMPLE = 8;
const PRECISION = ['--precision', '5'];
const SMALL = [...PRECISION, '--cores', '2', '--memory', '256MB'];

/** A tile as the store describes it. */
interface Tile {
  geocode: string;
  bbox: number[];
  /** Rows and columns of each group. */
  shapes: [number, number][];
  validPixels: number;
}

/** Cost and results of an ingest. */
interface Cut {
  cost: TreeCost;
  tiles: Tile[];
}

export async function benchWholeScene({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const side = short ? 2196 : 10_980;
  const rounds = short ? 1 : 3;
  const tiff = await product(side, false, log);
  const jpeg = await product(side, true, log);
  const [scene] = await describeScenes(tiff, {});
  const sourceMpx = scene.groups.reduce((sum, { bands }) => {
    return sum + (bands[0].header.width * bands[0].header.height * bands.length) / 1e6;
  }, 0);

  const series: Record<string, number[]> = {};
  const note = (name: string, value: number) => {
    series[name] = [...(series[name] ?? []), value];
  };
  for (let round = 0; round < rounds; round++) {
    const one = await ingest(tiff, [...PRECISION, '--cores', '1']);
    const two = await ingest(tiff, [...PRECISION, '--cores', '2']);
    const mpx = megapixels(two.tiles);
    note('ours', mpx / two.cost.cpuSeconds);
    note('speed-up', one.cost.wallSeconds / two.cost.wallSeconds);
    note('rows', mpx / (await gdalRows(scene, two.tiles)).cpuSeconds);
    note('each file', mpx / (await gdalEach(scene, two.tiles, { together: false })));
    note('each group', mpx / (await gdalEach(scene, two.tiles, { together: true })));
    const decoded = await ingest(jpeg, [...PRECISION, '--cores', '2']);
    note('jpeg', sourceMpx / decoded.cost.cpuSeconds);
    note('decode', sourceMpx / (await decodeAll(jpeg)));
    note('memory', (await ingest(jpeg, SMALL)).cost.peakMB);
    note('tiff memory', (await ingest(tiff, SMALL)).cost.peakMB);
    log(
      `round ${round + 1}: ${JSON.stringify(Object.fromEntries(Object.entries(series).map(([k, v]) => [k, v.at(-1)])))}`,
    );
  }
  const of = (name: string) => median(series[name]);
  return [
    result('whole ingest', 'Mpx/CPU s', of('ours'), {
      'gdalwarp a row of cells': of('rows'),
      'gdalwarp a tile and file': of('each file'),
      'gdalwarp a tile and group': of('each group'),
    }),
    result('whole ingest of JPEG 2000', 'source Mpx/CPU s', of('jpeg'), {
      'gdal_translate to raw': of('decode'),
    }),
    result('wall clock of one thread / of two', '', of('speed-up')),
    result('peak memory, --memory 256MB', 'MB', of('tiff memory')),
    result('peak memory with GDAL, --memory 256MB', 'MB', of('memory')),
  ];
}

/** Pixels with data, in millions. */
export function megapixels(tiles: Tile[]): number {
  return tiles.reduce((sum, { validPixels }) => sum + validPixels, 0) / 1e6;
}

/** A Sentinel-2 L2A product, which is created once and kept in the system's folder for temporary files. */
async function product(side: number, jpeg2000: boolean, log: (line: string) => void): Promise<string> {
  const path = join(BENCH_FOLDER, `safe-1-${side}-${jpeg2000 ? 'jp2' : 'tiff'}`);
  if (existsSync(path)) return path;
  log(`making a Sentinel-2 product of ${side} x ${side} pixels in ${path}`);
  const folder = mkdtempSync(join(tmpdir(), 'tilewright-bench-'));
  // The product has the metadata and file names of a small product, and large bands.
  const small = await writeSafe(folder, {
    level: 'L2A',
    baseline: '04.00',
    size: { width: 120, height: 120 },
  });
  const pixels = Object.entries(small.bandPaths).map(([name, file]) => ({ name, file }));
  for (const { name, file } of pixels) {
    const header = await openRaster(file);
    const pixel = header.transform.xx;
    const kind = name === 'SCL' ? 'classes' : 'band';
    const band = bandFile({ side: (side * 10) / pixel, pixel, kind }, log);
    rmSync(file);
    if (jpeg2000) spawnSync('gdal_translate', ['-q', '-of', 'JP2OpenJPEG', ...LOSSLESS, band, file]);
    else copyFileSync(band, file);
  }
  mkdirSync(BENCH_FOLDER, { recursive: true });
  cpSync(small.path, `${path}.part`, { recursive: true });
  renameSync(`${path}.part`, path);
  rmSync(folder, { recursive: true });
  return path;
}

/** Blocks as in delivered products, no loss. */
const LOSSLESS = 'QUALITY=100 REVERSIBLE=YES YCBCR420=NO BLOCKXSIZE=1024 BLOCKYSIZE=1024'
  .split(' ')
  .flatMap((option) => ['-co', option]);

/** A product into a new data folder by the real command. */
export async function ingest(path: string, flags: string[]): Promise<Cut> {
  const data = mkdtempSync(join(tmpdir(), 'tilewright-bench-'));
  try {
    const where = ['--data', data, '--format', 'json'];
    const cost = await measureTree(process.execPath, [COMMAND, 'ingest', path, ...flags, ...where]);
    const { stdout } = await measureTree(process.execPath, [COMMAND, 'search', '--limit', '10000', ...where]);
    return { cost, tiles: JSON.parse(stdout).features.map(tileOf) };
  } finally {
    rmSync(data, { recursive: true });
  }
}

interface Item {
  bbox: number[];
  properties: { geocode: string };
  assets: Record<
    string,
    { 'proj:shape': [number, number]; 'raster:bands': { statistics?: { valid_percent: number } }[] }
  >;
}

function tileOf({ bbox, properties, assets }: Item): Tile {
  const groups = Object.entries(assets).filter(([name]) => name !== 'mask');
  const shapes = groups.map(([, asset]) => asset['proj:shape']);
  const validPixels = groups.reduce((sum, [, asset]) => {
    const [rows, columns] = asset['proj:shape'];
    const shares = asset['raster:bands'].map((band) => (band.statistics?.valid_percent ?? 100) / 100);
    return sum + shares.reduce((total, share) => total + share * rows * columns, 0);
  }, 0);
  return { geocode: properties.geocode, bbox, shapes, validPixels };
}

/** The input of GDAL for each group. */
function peerGroups(scene: Scene) {
  return scene.groups.map(({ bands, resampling, nodata }) => ({
    files: bands.map((band) => band.header.path),
    resampling: resampling === 'bilinear' ? 'bilinear' : 'near',
    nodata,
  }));
}

/** One warp a row of cells, then its tiles, in one process, which may do it several times. */
export async function gdalRows(scene: Scene, tiles: Tile[], repeat = 1): Promise<TreeCost> {
  const folder = mkdtempSync(join(tmpdir(), 'tilewright-bench-'));
  try {
    const rows = [...new Set(tiles.map(({ bbox }) => bbox[1]))].map((south) =>
      tiles.filter(({ bbox }) => bbox[1] === south),
    );
    const job = { folder, groups: peerGroups(scene), rows, repeat };
    return await measureTree(PYTHON, [ROWS_SCRIPT], JSON.stringify(job));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * CPU seconds of one gdalwarp for each source of each tile, from a sample of tiles. A source is a file, as the product has
 * them, one a band; or with `together` a virtual mosaic of all bands of a group.
 */
async function gdalEach(scene: Scene, tiles: Tile[], { together }: { together: boolean }): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'tilewright-bench-'));
  const sample = Array.from({ length: SAMPLE }, (_, i) => tiles[Math.floor((i * tiles.length) / SAMPLE)]);
  let seconds = 0;
  try {
    for (const [g, { files, resampling, nodata }] of peerGroups(scene).entries()) {
      let sources = files;
      if (together) {
        sources = [join(folder, `${g}.vrt`)];
        await measureTree('gdalbuildvrt', ['-q', '-separate', sources[0], ...files]);
      }
      const out = join(folder, 'tile.tif');
      for (const { bbox, shapes } of sample) {
        const [rows, columns] = shapes[g];
        const where = ['-t_srs', 'EPSG:4326', '-te', ...bbox.map(String), '-ts', `${columns}`, `${rows}`];
        const how = ['-r', resampling, ...(nodata === null ? [] : ['-srcnodata', String(nodata)])];
        for (const source of sources) {
          const args = ['-q', '-overwrite', ...where, ...how, ...CODEC, source, out];
          seconds += (await measureTree('gdalwarp', args)).cpuSeconds;
        }
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return (seconds * tiles.length) / sample.length;
}

const CODEC = 'COMPRESS=DEFLATE PREDICTOR=2 ZLEVEL=1 TILED=YES'
  .split(' ')
  .flatMap((option) => ['-co', option]);

/** CPU seconds of decoding alone: each band to raw pixels. */
async function decodeAll(product: string): Promise<number> {
  const [scene] = await describeScenes(product, {});
  const files = scene.groups.flatMap(({ bands }) => bands.map((band) => band.header.path));
  const folder = mkdtempSync(join(tmpdir(), 'tilewright-bench-'));
  const out = join(folder, 'raw');
  let seconds = 0;
  try {
    for (const file of files)
      seconds += (await measureTree('gdal_translate', ['-q', '-of', 'ENVI', file, out])).cpuSeconds;
  } finally {
    rmSync(folder, { recursive: true });
  }
  return seconds;
}
