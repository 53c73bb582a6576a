/** Reads the pixels of the dates of a cell as physical values. */
import type { PixelGrid } from '../../grid/index.js';
import {
  openRaster,
  type PixelArray,
  type RasterHeader,
  readRaster,
  readWindow,
  type Window,
} from '../../raster/index.js';
import type { BandName } from '../models/index.js';
import {
  coarsen,
  coarsenMask,
  coveredParts,
  meanOfFinite,
  type Parts,
  partsOf,
  span,
  worstCode,
} from './coarsen-training-pixels.js';
import type { AcquisitionFiles, BandSource } from './training-data-acquisitions.js';
import type { AcquisitionPixels } from './training-data-pixels.js';

export type ReadOutcome = { dates: AcquisitionPixels[]; bytesRead: number } | { skipped: string };

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

/** Reads a window of one date of a cell. `size` is that of the whole cell, and not finer than any band. */
export async function readAcquisitionWindow(
  files: AcquisitionFiles,
  size: PixelGrid,
  window: Window,
): Promise<AcquisitionPixels> {
  const wanted = Object.entries(files.bands) as [BandName, BandSource][];
  const bands: AcquisitionPixels['bands'] = {};
  for (const path of new Set(wanted.map(([, file]) => file.path))) {
    const own = wanted.filter(([, file]) => file.path === path);
    const numbers = own.map(([, { band }]) => band);
    const { header, stored, parts } = await readParts(path, numbers, size, window);
    for (const [i, [name, file]] of own.entries())
      bands[name] = coarsen(physical(stored[i], header.nodata, file), parts, meanOfFinite);
  }
  const { stored, parts } = await readParts(files.mask, [0], size, window);
  const mask = coarsen(new Uint8Array(stored[0]), parts, worstCode);
  const { width, height } = window;
  return { time: files.time, width, height, bands, mask };
}

/** Reads the pixels of a file that a window of a coarser size covers. */
async function readParts(path: string, bands: number[], size: PixelGrid, window: Window) {
  const header = await openRaster(path);
  const across = coveredParts(header.width, size.width, span(window.column, window.width));
  const down = coveredParts(header.height, size.height, span(window.row, window.height));
  const covering = { column: across.from, row: down.from, width: across.count, height: down.count };
  const parts: Parts = { columns: across.parts, rows: down.parts };
  return { header, stored: await readWindow(header, bands, covering), parts };
}

/** Returns the reason why two dates of a cell cannot be trained together; undefined if their sizes are equal. */
export function differInSize(a: PixelGrid, b: PixelGrid): string | undefined {
  if (a.width === b.width && a.height === b.height) return undefined;
  return `the dates differ in size: ${sizeOf(a)} and ${sizeOf(b)} px`;
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
    const values = physical(raster.bands.get(file.band)!, raster.header.nodata, file);
    bands[name] = coarsen(values, partsOf(raster.header, size), meanOfFinite);
    const brightness = meanOfFinite(bands[name]);
    if (Math.abs(brightness) > MAX_REFLECTANCE)
      return {
        skipped: `the values are not reflectance (mean ${name} is ${brightness.toPrecision(3)}, ${raster.header.dataType} with scale ${file.scale}); ingest the scenes again with the --scale and --offset of the product, such as --scale 0.0001 if they are ten thousandths`,
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

function physical(
  stored: PixelArray,
  nodata: number | undefined,
  { scale, offset }: BandSource,
): Float32Array {
  const values = new Float32Array(stored.length);
  for (let i = 0; i < stored.length; i++) values[i] = stored[i] === nodata ? NaN : stored[i] * scale + offset;
  return values;
}

const coarsest = (sizes: PixelGrid[]): PixelGrid =>
  sizes.reduce((a, b) => (b.width * b.height < a.width * a.height ? b : a));

function sizeOf({ width, height }: PixelGrid): string {
  return `${width}x${height}`;
}
