/** Reads the pixels of the dates of a cell as physical values. */
import type { PixelGrid } from '../../grid/index.js';
import { Mask, type PixelArray, type RasterHeader, readRaster } from '../../raster/index.js';
import type { BandName } from '../models/index.js';
import type { AcquisitionFiles, BandSource } from './training-data-acquisitions.js';
import type { AcquisitionPixels } from './training-data-pixels.js';

export type ReadOutcome = { dates: AcquisitionPixels[]; bytesRead: number } | { skipped: string };

/** Mask codes by priority: a coarse pixel has the first of these codes that occurs in the pixels that it covers. */
const MASK_PRIORITY: number[] = [
  Mask.nodata,
  Mask.cloud,
  Mask.shadow,
  Mask.snow,
  Mask.filled,
  Mask.notAssessed,
  Mask.clear,
];

/** Upper bound on the mean of a band. Reflectance is 0 to 1; clouds and sun glint can be slightly brighter. */
const MAX_REFLECTANCE = 1.5;

/** The bands that were read from a file: stored values by band index. */
interface ReadRaster {
  header: RasterHeader;
  bands: Map<number, PixelArray>;
}

/** Files that were read, by path. */
export type ReadRasters = Map<string, ReadRaster>;

/**
 * Reads all dates of a cell, or returns the reason why they cannot be used together. Files in `kept` are not read again, and files that
 * are read are added to it; without `kept`, each date is released before the next. All bands are resampled to `size`, which must not be
 * finer than any band; default: the size of the coarsest band. `bytesRead` includes files that were kept.
 */
export async function readAcquisitions(
  files: AcquisitionFiles[],
  kept?: ReadRasters,
  size?: PixelGrid,
): Promise<ReadOutcome> {
  const dates: AcquisitionPixels[] = [];
  let bytesRead = 0;
  for (const file of files) {
    const date = await readAcquisition(file, kept ?? new Map(), size);
    if ('skipped' in date) return date;
    const [first = date.pixels] = dates;
    const differing = differInSize(first, date.pixels);
    if (differing !== undefined) return { skipped: differing };
    dates.push(date.pixels);
    bytesRead += date.bytesRead;
  }
  return { dates, bytesRead };
}

/** Returns the reason why two dates of a cell cannot be trained together; undefined if their sizes are equal. */
export function differInSize(a: PixelGrid, b: PixelGrid): string | undefined {
  if (a.width === b.width && a.height === b.height) return undefined;
  return `its dates differ in size: ${sizeOf(a)} and ${sizeOf(b)} px`;
}

/** Finer bands are averaged to the common size. */
async function readAcquisition(
  files: AcquisitionFiles,
  rasters: ReadRasters,
  wantedSize: PixelGrid | undefined,
): Promise<{ pixels: AcquisitionPixels; bytesRead: number } | { skipped: string }> {
  const wanted = Object.entries(files.bands) as [BandName, BandSource][];
  const bandFiles = wanted.map(([, file]) => file);
  await readOnce([...bandFiles, { path: files.mask, band: 0 }], rasters);
  const { header: mask, bands: codes } = rasters.get(files.mask)!;
  const headers = [...new Set(bandFiles.map(({ path }) => path))].map((path) => rasters.get(path)!.header);
  const size = wantedSize ?? coarsest(headers);
  const bands: AcquisitionPixels['bands'] = {};
  for (const [name, file] of wanted) {
    const raster = rasters.get(file.path)!;
    bands[name] = coarsenByMean(physical(raster, file), raster.header, size);
    const brightness = meanOfFinite(bands[name]);
    if (Math.abs(brightness) > MAX_REFLECTANCE)
      return {
        skipped: `its values are not reflectance (mean ${name} is ${brightness.toPrecision(3)}, ${raster.header.dataType} with scale ${file.scale}); ingest its scenes again with the --scale and --offset of the product, such as --scale 0.0001 if they are ten thousandths`,
      };
  }
  const { width, height } = size;
  return {
    pixels: { time: files.time, width, height, bands, mask: coarsenMask(codes.get(0)!, mask, size) },
    bytesRead: headers.reduce((sum, { fileBytes }) => sum + fileBytes, mask.fileBytes),
  };
}

/** Opens each file once and reads the missing bands. */
async function readOnce(wanted: Pick<BandSource, 'path' | 'band'>[], rasters: ReadRasters): Promise<void> {
  for (const path of new Set(wanted.map((file) => file.path))) {
    const known: ReadRaster['bands'] = rasters.get(path)?.bands ?? new Map();
    const numbers = new Set(wanted.filter((file) => file.path === path).map(({ band }) => band));
    const missing = [...numbers].filter((band) => !known.has(band));
    if (missing.length === 0) continue;
    const { header, bands } = await readRaster(path, missing);
    for (const [i, band] of missing.entries()) known.set(band, bands[i]);
    rasters.set(path, { header, bands: known });
  }
}

function physical({ header, bands }: ReadRaster, { band, scale, offset }: BandSource): Float32Array {
  const stored = bands.get(band)!;
  const values = new Float32Array(stored.length);
  for (let i = 0; i < stored.length; i++)
    values[i] = stored[i] === header.nodata ? NaN : stored[i] * scale + offset;
  return values;
}

/** NaN if no value is finite. */
function meanOfFinite(values: Iterable<number>): number {
  let sum = 0;
  let count = 0;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    sum += value;
    count++;
  }
  return sum / count;
}

const coarsest = (sizes: PixelGrid[]): PixelGrid =>
  sizes.reduce((a, b) => (b.width * b.height < a.width * a.height ? b : a));

function sizeOf({ width, height }: PixelGrid): string {
  return `${width}x${height}`;
}

/** Resamples mask codes to a coarser size. A pixel has the worst code of all pixels that it covers, even partly. */
export function coarsenMask(codes: PixelArray, fine: PixelGrid, coarse: PixelGrid): Uint8Array {
  const severity = new Uint8Array(256).fill(MASK_PRIORITY.length);
  MASK_PRIORITY.forEach((code, rank) => {
    severity[code] = rank;
  });
  const worse = (a: number, b: number) => (severity[b] < severity[a] ? b : a);
  return coarsen(new Uint8Array(codes), fine, coarse, (covered) => covered.reduce(worse));
}

/** Resamples to a coarser size by the mean of all finite values that a pixel covers, even partly. */
function coarsenByMean(values: Float32Array, fine: PixelGrid, coarse: PixelGrid): Float32Array {
  return coarsen(values, fine, coarse, meanOfFinite);
}

/** Resamples to a coarser size. `reduce` returns the value of a pixel from all values that it covers, even partly. */
function coarsen<T extends Float32Array | Uint8Array>(
  values: T,
  fine: PixelGrid,
  coarse: PixelGrid,
  reduce: (covered: number[]) => number,
): T {
  if (fine.width === coarse.width && fine.height === coarse.height) return values;
  const columns = pixelSpans(fine.width, coarse.width);
  const rows = pixelSpans(fine.height, coarse.height);
  const coarser = values.slice(0, coarse.width * coarse.height) as T;
  let pixel = 0;
  for (const [top, bottom] of rows)
    for (const [left, right] of columns) {
      const covered: number[] = [];
      for (let row = top; row < bottom; row++)
        for (let column = left; column < right; column++) covered.push(values[row * fine.width + column]);
      coarser[pixel++] = reduce(covered);
    }
  return coarser;
}

/** For each of `coarse` equal parts of a row or column, the range of fine pixels [from, to) that it covers, even partly. */
function pixelSpans(fine: number, coarse: number): [from: number, to: number][] {
  return Array.from({ length: coarse }, (_, i) => [
    Math.floor((i * fine) / coarse),
    Math.ceil(((i + 1) * fine) / coarse),
  ]);
}
