/** Dates of a cell: their files, and their pixels, which are read as physical values at one size, with masks of the usable ones. */
import type { PixelGrid } from '../grid/index.js';
import {
  type Areas,
  areaMean,
  type BandValidity,
  type ImageFile,
  imageKey,
  Mask,
  openImage,
  type PixelArray,
  pixelAreas,
  type RasterHeader,
  readImage,
  readValidity,
  readWindow,
  type Window,
  widenClouds,
} from '../raster/index.js';
import type { Dated } from './dates.js';
import type { BandName, ModelSpec } from './models/spec.js';

/** One band of an image of a tile file. Physical value = stored value * scale + offset. */
export interface BandSource extends ImageFile {
  /** Index from 0. */
  band: number;
  scale: number;
  offset: number;
}

/** Files of one date of a cell. */
export interface AcquisitionFiles extends Dated {
  bands: Partial<Record<BandName, BandSource>>;
  /** The mask, whose resolution is that of the bands or finer. */
  mask: ImageFile;
  /** Cloud and shadow are widened by this share of the cell, see `widenClouds`. Default: not at all. */
  rim?: Parameters<typeof widenClouds>[3];
}

/** A cloudy date and a clear one, as indices into a list of dates. */
export interface DatePair {
  cloudy: number;
  clear: number;
  /** Other dates for the temporal prior, the nearest in time first. Default: none. */
  prior?: number[];
}

/** One date of a cell: reflectances (0-1) and mask codes, row by row from the north-west. NaN marks missing values. */
export interface AcquisitionPixels extends Dated {
  width: number;
  height: number;
  /** Only the bands that were read. */
  bands: Partial<Record<BandName, Float32Array>>;
  mask: Uint8Array;
  /** The mask before it was widened. */
  stated?: Uint8Array;
}

type ReadOutcome = { dates: AcquisitionPixels[]; bytesRead: number } | { skipped: string };

/** Upper bound on the mean of a band. Reflectance is 0 to 1; clouds and sun glint can be slightly brighter. */
const MAX_REFLECTANCE = 1.5;

/** The bands that were read from an image: stored values, and pixels that hold data, by band index. */
interface ReadRaster {
  header: RasterHeader;
  bands: Map<number, PixelArray>;
  valid: Map<number, BandValidity>;
}

/** Images that were read, by their keys. */
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
  for (const key of new Set(wanted.map(([, file]) => imageKey(file)))) {
    const own = wanted.filter(([, file]) => imageKey(file) === key);
    const numbers = own.map(([, { band }]) => band);
    const { stored, valid, areas } = await readAreas(own[0][1], numbers, size, window);
    for (const [i, [name, file]] of own.entries())
      bands[name] = coarsen(physical(stored[i], valid[i], file), areas);
  }
  const { width, height } = window;
  const { time, end } = files;
  return { time, end, width, height, bands, mask: await readMaskWindow(files, size, window) };
}

/** Clouds outside of the window reach into it if they are widened. */
async function readMaskWindow(
  { mask, rim = NO_RIM }: AcquisitionFiles,
  size: PixelGrid,
  window: Window,
): Promise<Uint8Array> {
  const margin = rim.x === 0 ? 0 : 1 + Math.ceil(Math.max(rim.x * size.width, rim.y * size.height));
  const column = Math.max(0, window.column - margin);
  const row = Math.max(0, window.row - margin);
  const width = Math.min(size.width, window.column + window.width + margin) - column;
  const height = Math.min(size.height, window.row + window.height + margin) - row;
  const { stored, areas } = await readAreas(mask, [0], size, { column, row, width, height });
  const codes = worstCodes(stored[0], areas);
  // The share is that of the cell, not of this part.
  const inPart = { x: (rim.x * size.width) / width, y: (rim.y * size.height) / height };
  const wide = widenClouds(codes, width, height, inPart);
  return Uint8Array.from({ length: window.width * window.height }, (_, at) => {
    const x = window.column - column + (at % window.width);
    const y = window.row - row + Math.floor(at / window.width);
    return wide[y * width + x];
  });
}

const NO_RIM = { x: 0, y: 0 };

/** Reads the pixels of an image that a window of a coarser size covers. */
async function readAreas(image: ImageFile, bands: number[], size: PixelGrid, window: Window) {
  const header = await openImage(image);
  const areas = pixelAreas(header, size, window);
  const stored = await readWindow(header, bands, areas.covering);
  return { stored, valid: await readValidity(header, bands, areas.covering, stored), areas };
}

/** Returns the reason why two dates of a cell cannot be trained together; undefined if their sizes are equal. */
export function differInSize(a: PixelGrid, b: PixelGrid): string | undefined {
  if (a.width === b.width && a.height === b.height) return undefined;
  return `the dates differ in size: ${sizeOf(a)} and ${sizeOf(b)} px`;
}

/** Finer bands are averaged to the common size, weighted by area. */
async function readAcquisition(
  files: AcquisitionFiles,
  rasters: ReadRasters,
  wantedSize: PixelGrid | undefined,
): Promise<{ pixels: AcquisitionPixels; bytesRead: number } | { skipped: string }> {
  const wanted = Object.entries(files.bands) as [BandName, BandSource][];
  const bandFiles = wanted.map(([, file]) => file);
  await readOnce([...bandFiles, { ...files.mask, band: 0 }], rasters);
  const { header: mask, bands: codes } = rasters.get(imageKey(files.mask))!;
  const headers = [...new Set(bandFiles.map(imageKey))].map((key) => rasters.get(key)!.header);
  const size = wantedSize ?? coarsest(headers);
  const bands: AcquisitionPixels['bands'] = {};
  for (const [name, file] of wanted) {
    const raster = rasters.get(imageKey(file))!;
    const values = physical(raster.bands.get(file.band)!, raster.valid.get(file.band), file);
    bands[name] = coarsen(values, pixelAreas(raster.header, size));
    const brightness = meanOfFinite(bands[name]);
    if (Math.abs(brightness) > MAX_REFLECTANCE)
      return {
        skipped: `the values are not reflectance (mean ${name} is ${brightness.toPrecision(3)}, ${raster.header.dataType} with scale ${file.scale}); ingest the scenes again with the --scale and --offset of the product, such as --scale 0.0001 if they are ten thousandths`,
      };
  }
  const { width, height } = size;
  const stated = coarsenMask(codes.get(0)!, mask, size);
  const wide = widenClouds(stated, width, height, files.rim ?? NO_RIM);
  return {
    pixels: {
      ...{ time: files.time, end: files.end, width, height, bands, mask: wide },
      ...(wide !== stated && { stated }),
    },
    bytesRead: headers.reduce((sum, { fileBytes }) => sum + fileBytes, mask.fileBytes),
  };
}

/** Opens each image once and reads the missing bands. */
async function readOnce(wanted: (ImageFile & { band: number })[], rasters: ReadRasters): Promise<void> {
  for (const [key, image] of new Map(wanted.map((file) => [imageKey(file), file]))) {
    const raster = rasters.get(key);
    const numbers = new Set(wanted.filter((file) => imageKey(file) === key).map(({ band }) => band));
    const missing = [...numbers].filter((band) => !raster?.bands.has(band));
    if (missing.length === 0) continue;
    const { header, bands, valid } = await readImage(image, missing);
    const all: ReadRaster = raster ?? { header, bands: new Map(), valid: new Map() };
    for (const [i, band] of missing.entries()) {
      all.bands.set(band, bands[i]);
      all.valid.set(band, valid[i]);
    }
    rasters.set(key, all);
  }
}

function physical(
  stored: PixelArray,
  valid: BandValidity | undefined,
  { scale, offset }: BandSource,
): Float32Array {
  const values = new Float32Array(stored.length);
  for (let i = 0; i < stored.length; i++) values[i] = valid?.[i] === 0 ? NaN : stored[i] * scale + offset;
  return values;
}

const coarsest = (sizes: PixelGrid[]): PixelGrid =>
  sizes.reduce((a, b) => (b.width * b.height < a.width * a.height ? b : a));

function sizeOf({ width, height }: PixelGrid): string {
  return `${width}x${height}`;
}

/** 1 where training may read the inputs: for cloud removal every pixel with data, otherwise clear pixels. */
export function inputMaskOf({ inputs, target }: ModelSpec, date: AcquisitionPixels): Uint8Array {
  return maskWhere(date, inputs, target.kind === 'clear' ? (code) => code !== Mask.nodata : isMeasured);
}

/** 1 where inference may read the inputs to make a map: clear, not assessed, estimated by a model, or of another date. */
export function mappableMask(date: AcquisitionPixels, names: readonly BandName[]): Uint8Array {
  const isReplaced = (code: number) => code === Mask.estimated || code === Mask.otherDate;
  return maskWhere(date, names, (code) => isMeasured(code) || isReplaced(code));
}

/** 1 where each band has a value and the mask code is clear or not assessed. */
export function clearMask(date: AcquisitionPixels, names: readonly BandName[]): Uint8Array {
  return maskWhere(date, names, isMeasured);
}

/** 1 where `fits` accepts the mask code and each band has a value. */
function maskWhere(
  { bands, mask }: AcquisitionPixels,
  names: readonly BandName[],
  fits: (code: number) => boolean,
) {
  const planes = names.map((name) => bands[name]!);
  return mask.map((code, at) => (fits(code) && planes.every((plane) => Number.isFinite(plane[at])) ? 1 : 0));
}

/** True for cloud and cloud shadow. */
export const isCloudy = (code: number): boolean => code === Mask.cloud || code === Mask.shadow;

/** True for clear and not assessed. Replaced pixels are not measured on their date. */
function isMeasured(code: number): boolean {
  return code === Mask.clear || code === Mask.notAssessed;
}

/** Mask codes by priority: a coarse pixel has the first of these codes that occurs in the pixels that it covers. */
const MASK_PRIORITY: number[] = [
  Mask.nodata,
  Mask.cloud,
  Mask.shadow,
  Mask.snow,
  Mask.estimated,
  Mask.otherDate,
  Mask.notAssessed,
  Mask.clear,
];

/** Rank of each mask code, the worst first. */
const SEVERITY = new Uint8Array(256).fill(MASK_PRIORITY.length);
MASK_PRIORITY.forEach((code, rank) => {
  SEVERITY[code] = rank;
});

/** Resamples mask codes to a coarser size. A pixel has the worst code of all pixels that it covers, even partly. */
export function coarsenMask(codes: PixelArray, fine: PixelGrid, coarse: PixelGrid): Uint8Array {
  return worstCodes(codes, pixelAreas(fine, coarse));
}

function worstCodes(codes: PixelArray, { covering, columns, rows }: Areas): Uint8Array {
  const worst = new Uint8Array(columns.length * rows.length);
  let to = 0;
  for (const { first: top, weights: down } of rows)
    for (const { first: left, weights: across } of columns) {
      let code = codes[top * covering.width + left];
      for (let y = 0; y < down.length; y++)
        for (let x = 0; x < across.length; x++) {
          const other = codes[(top + y) * covering.width + left + x];
          if (SEVERITY[other] < SEVERITY[code]) code = other;
        }
      worst[to++] = code;
    }
  return worst;
}

/** Infinite pixels do not count. Values that have the coarse size already are returned as they are. */
function coarsen(values: Float32Array, areas: Areas): Float32Array {
  if (areas.columns.length * areas.rows.length === values.length) return values;
  return areaMean(
    values.map((value) => (Number.isFinite(value) ? value : NaN)),
    areas,
  );
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
