/** Reads a raster with tilewright and with GDAL, and compares position, pixels and validity. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TilewrightError } from '../../src/errors.js';
import {
  createTransform,
  crsFromEpsg,
  detectFileType,
  effectiveNodata,
  findValidityBand,
  listSubdatasets,
  nodataAsType,
  openRaster,
  type PixelArray,
  pixelToMap,
  type RasterHeader,
  readWindow,
  SIGNATURE_BYTES,
  viewPixels,
} from '../../src/raster/index.js';

export interface Outcome {
  /** A row of the table. */
  name: string;
  /** True if someone should examine the file. */
  look: boolean;
  detail?: string;
}

/** Larger images take too long to compare. */
const MAX_PIXELS = 80e6;
/** Maximum number of compared bands. */
const MAX_BANDS = 8;
/** Pixels. Two implementations of the transverse Mercator differ by less. */
const MAX_SHIFT = 0.01;
/** Tolerance in grey levels between two JPEG decoders. */
const MAX_LOSSY = 2;

/** True if the first bytes are those of a raster; false for archives. */
export function isRasterFile(path: string): boolean {
  const file = openSync(path, 'r');
  try {
    const start = Buffer.alloc(SIGNATURE_BYTES);
    const kind = detectFileType(start.subarray(0, readSync(file, start)));
    return kind !== null && kind !== 'zip' && kind !== 'gzip' && kind !== 'tar';
  } finally {
    closeSync(file);
  }
}

export async function rasterOutcome(path: string): Promise<Outcome> {
  try {
    return await compare(path);
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    const byGdal = gdalReads(path);
    const name = `refused, GDAL ${byGdal ? 'reads it' : 'fails as well'}: ${error.code}`;
    const isFault = byGdal && /TRUNCATED|CORRUPT|UNREADABLE/.test(error.code);
    return { name, look: isFault, detail: error.message };
  }
}

/** A position for files without one or with an unknown system, so that their pixels can be compared. */
const SOMEWHERE = {
  crs: crsFromEpsg(32633),
  corners: [500_000, 5_000_000, 500_100, 4_999_900],
} as const;

async function compare(path: string): Promise<Outcome> {
  const dataset = await gdalName(path);
  let placed = true;
  const header = await openRaster(path, dataset.layer).catch((error) => {
    placed = false;
    if (/NO_CRS|UNKNOWN_CRS/.test(error.code)) return openRaster(path, dataset.layer, SOMEWHERE);
    throw error;
  });
  const { width, height, bands, dataType } = header;
  if (width * height > MAX_PIXELS) return { name: 'too large to compare', look: false };
  const count = Math.min(bands, MAX_BANDS);
  const all = { column: 0, row: 0, width, height };
  const indexes = Array.from({ length: count }, (_, band) => band);
  const own = await readWindow(header, indexes, all);
  if (!gdalReads(dataset.name)) return { name: 'read, GDAL fails', look: true };
  const info = JSON.parse(gdal('gdalinfo', '-json', dataset.name));
  if (info.size[0] !== width || info.size[1] !== height || info.bands.length !== bands)
    return { name: 'wrong size', look: true, detail: `${info.size} x ${info.bands.length} in GDAL` };

  const worst = indexes.reduce((most, band) => {
    const theirs = gdalBand(dataset.name, String(band + 1), dataType, width * height);
    const difference = largestDifference(own[band]!, theirs);
    if (difference === 0 || header.blocks.reader !== 'hdf5') return Math.max(most, difference);
    // GDAL does not flip some HDF5 images that are stored from south to north.
    return Math.max(most, Math.min(difference, largestDifference(own[band]!, upsideDown(theirs, width))));
  }, 0);
  const isLossy = header.blocks.reader === 'tiff' && header.blocks.compression === 7;
  if (worst > (isLossy ? MAX_LOSSY : 0)) return { name: 'wrong pixels', look: true, detail: `by ${worst}` };
  const masked = await validityDiffers(header, own, dataset.name);
  if (masked > 0) return { name: 'wrong validity', look: true, detail: `${masked} pixels` };
  if (!placed) return { name: 'same pixels, no position that is known', look: false };
  const shift = shiftOf(header, dataset.name);
  if (shift === undefined) return { name: 'same pixels, position not compared', look: false };
  const detail = `${shift.metres} m, ${shift.pixels} pixels`;
  const stated = header.crs.datumErrorMetres ?? 0;
  if (shift.pixels > MAX_SHIFT && shift.metres <= stated)
    return { name: 'same pixels, position within the error that is stated', look: false, detail };
  if (shift.pixels > MAX_SHIFT) return { name: 'wrong position', look: true, detail };
  return { name: worst > 0 ? 'within 2 grey levels (JPEG)' : 'same', look: false };
}

/** The name by which GDAL opens a file; in a file with several layers, the first layer that tilewright reads. */
async function gdalName(path: string): Promise<{ name: string; layer?: string }> {
  // A file with one raster is not a container.
  const container = await listSubdatasets(path).catch(() => undefined);
  const layer = container?.subdatasets[0]?.name;
  if (!container || layer === undefined) return { name: path };
  const subdatasets = Object.values<string>(
    JSON.parse(gdal('gdalinfo', '-json', path)).metadata?.SUBDATASETS ?? {},
  );
  const name = subdatasets.find(
    (text) => text.endsWith(`:${layer.replace(/^\//, '')}`) || text.endsWith(`:${layer}`),
  );
  return { name: name ?? path, layer };
}

function gdal(program: string, ...args: string[]): string {
  const env = { ...process.env, GDAL_PAM_ENABLED: 'NO' };
  return execFileSync(program, args, {
    ...{ encoding: 'utf8', env, maxBuffer: 2 ** 28 },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

/** Raw pixels without georeferencing. They get another position, because not every position can be written. */
const RAW = ['-of', 'ENVI', '-a_ullr', '0', '1', '1', '0'];

function gdalReads(path: string): boolean {
  try {
    return inFolder((folder) => {
      gdal('gdal_translate', '-q', ...RAW, path, join(folder, 'raw'));
      return true;
    });
  } catch {
    // If GDAL fails, that is the outcome.
    return false;
  }
}

const TYPES = {
  uint8: 'Byte',
  int8: 'Byte',
  uint16: 'UInt16',
  int16: 'Int16',
  uint32: 'UInt32',
  int32: 'Int32',
  float32: 'Float32',
  float64: 'Float64',
} as const;

/** `band`: a number from 1, or "mask,1". */
function gdalBand(path: string, band: string, dataType: RasterHeader['dataType'], size: number): PixelArray {
  return inFolder((folder) => {
    const raw = join(folder, 'raw');
    gdal('gdal_translate', '-q', ...RAW, '-ot', TYPES[dataType], '-b', band, '-mask', 'none', path, raw);
    const bytes = new Uint8Array(readFileSync(raw));
    return viewPixels(dataType, bytes.buffer, 0, size);
  });
}

function inFolder<T>(use: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'tilewright-suites-'));
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function largestDifference(a: PixelArray, b: PixelArray): number {
  let worst = 0;
  for (let i = 0; i < a.length; i++) {
    if (Object.is(a[i], b[i])) continue;
    const difference = Math.abs(a[i]! - b[i]!);
    worst = Math.max(worst, Number.isNaN(difference) ? Infinity : difference);
  }
  return worst;
}

function upsideDown(pixels: PixelArray, width: number): PixelArray {
  const out = pixels.slice();
  for (let from = 0; from < pixels.length; from += width)
    out.set(pixels.subarray(from, from + width), pixels.length - from - width);
  return out;
}

/** Pixels of the first band that are valid in tilewright and not in GDAL, or vice versa. NaN is never valid in tilewright. */
async function validityDiffers(header: RasterHeader, own: PixelArray[], name: string): Promise<number> {
  const { width, height, dataType } = header;
  const first = header.alpha === 0 ? 1 : 0;
  const pixels = own[first];
  if (!pixels) return 0;
  const band = findValidityBand(header, first);
  const all = { column: 0, row: 0, width, height };
  const validity = band && (await readWindow(band.header, [band.index], all))[0]!;
  const nodata = nodataAsType(dataType, effectiveNodata(header));
  const theirs = gdalBand(name, `mask,${first + 1}`, 'uint8', width * height);
  let differ = 0;
  for (let i = 0; i < pixels.length; i++) {
    if (Number.isNaN(pixels[i])) continue;
    // If a file has both, GDAL uses only one of the two.
    const byNodata = pixels[i] !== nodata;
    const byMask = validity === undefined || validity[i] !== 0;
    const expected = theirs[i] !== 0;
    if ((byNodata && byMask) !== expected && byMask !== expected && byNodata !== expected) differ++;
    else if (validity === undefined && byNodata !== expected) differ++;
  }
  return differ;
}

/** How far the corners and the middle lie from where GDAL has them, in metres and in pixels; undefined if GDAL has no position. */
function shiftOf(header: RasterHeader, name: string): { metres: number; pixels: number } | undefined {
  const { width, height, crs, transform } = header;
  const points: Point[] = [
    [0, 0],
    [width, 0],
    [0, height],
    [width, height],
    [width / 2, height / 2],
  ];
  const theirs = gdalPlaces(name, points);
  if (!theirs) return undefined;
  const toLonLat = createTransform(crs, 'EPSG:4326');
  const placeOf = ([column, row]: Point) => toLonLat(...pixelToMap(transform, column, row));
  const shift = { metres: 0, pixels: 0 };
  for (const [i, point] of points.entries()) {
    const own = placeOf(point);
    const metres = distance(own, theirs[i]!);
    // Outside of the projection, one of the two is undefined.
    if (!Number.isFinite(metres)) continue;
    const pixel = distance(own, placeOf([point[0] + (point[0] < width ? 1 : -1), point[1]]));
    shift.metres = Math.max(shift.metres, metres);
    shift.pixels = Math.max(shift.pixels, metres / pixel);
  }
  return shift;
}

type Point = [x: number, y: number];

function gdalPlaces(name: string, points: Point[]): Point[] | undefined {
  try {
    const input = points.map((point) => point.join(' ')).join('\n');
    const answer = execFileSync('gdaltransform', ['-t_srs', 'EPSG:4326', '-output_xy', name], {
      ...{ input, encoding: 'utf8' },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    return answer
      .trim()
      .split('\n')
      .map((line) => line.split(' ').map(Number) as Point);
  } catch {
    // The file has no position, or a system that PROJ does not know.
    return undefined;
  }
}

const METRES_OF_A_DEGREE = 111_320;

/** Metres between two nearby points; longitudes may differ by multiples of 360 degrees. */
function distance([lon, lat]: Point, [otherLon, otherLat]: Point): number {
  const turn = 360 * Math.round((otherLon - lon) / 360);
  const east = (otherLon - lon - turn) * Math.cos((lat * Math.PI) / 180);
  return METRES_OF_A_DEGREE * Math.hypot(east, otherLat - lat);
}
