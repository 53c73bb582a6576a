/** Reads pixels: rows for a rolling window, windows, and complete small images. */

import { windowOutside } from './errors.js';
import { readEnvi } from './formats/envi.js';
import { type GdalReadRequest, readViaGdal } from './formats/gdal.js';
import { readHdf5 } from './formats/hdf5.js';
import { readHdf5Cube } from './formats/hdf5-cube.js';
import { readMat } from './formats/mat.js';
import { readTiff } from './formats/tiff.js';
import { type ImageFile, openImage, openRaster } from './open.js';
import { allocatePixels, nodataAsType } from './pixels/data-types.js';
import { type BandValidity, bandValidity, effectiveNodata, findValidityBand } from './pixels/masks.js';
import type { PixelArray, RasterHeader, ReadRequest, Window } from './raster.js';

/** Rows [rowStart, rowEnd) of some bands (from 0). Row r is written to `into[i]` at (r - firstRow) * header.width. */
export interface RowsRequest {
  header: RasterHeader;
  bands: number[];
  rowStart: number;
  rowEnd: number;
  into: PixelArray[];
  firstRow: number;
}

/**
 * Decodes rows of several rasters, in order. Rasters that GDAL decodes share one process, which is cheaper. Every block that touches the
 * rows is decoded once, so request complete rows of blocks (`alignToBlocks`) to decode no block twice. Several threads may call it at the
 * same time for disjoint rows. If `signal` aborts, the promise rejects with its reason; pixels already written to `into` stay.
 */
export async function readRowsOfRasters(rows: RowsRequest[], signal?: AbortSignal): Promise<void> {
  const reads = rows.map(({ header, bands, rowStart, rowEnd, into, firstRow }) => ({
    header,
    bands,
    window: { column: 0, row: rowStart, width: header.width, height: rowEnd - rowStart },
    target: { arrays: into, offset: (rowStart - firstRow) * header.width, stride: header.width },
  }));
  await readInto(reads, signal);
}

/** Returns the pixels of a window of some bands: one array of window.width x window.height for each band. */
export async function readWindow(
  header: RasterHeader,
  bands: number[],
  window: Window,
  signal?: AbortSignal,
): Promise<PixelArray[]> {
  const arrays = bands.map(() => allocatePixels(header.dataType, window.width * window.height));
  await readWindowInto(header, bands, window, arrays, signal);
  return arrays;
}

/** `readWindow` into the start of existing arrays, which may be longer. */
export async function readWindowInto(
  header: RasterHeader,
  bands: number[],
  window: Window,
  into: PixelArray[],
  signal?: AbortSignal,
): Promise<void> {
  const target = { arrays: into, offset: 0, stride: window.width };
  await readInto([{ header, bands, window, target }], signal);
}

/** Finds which pixels hold data in bands of a window that are already read: by a mask, an alpha band, the nodata value, or NaN. */
export async function readValidity(
  header: RasterHeader,
  bands: number[],
  window: Window,
  pixels: PixelArray[],
): Promise<BandValidity[]> {
  const hole = nodataAsType(header.dataType, effectiveNodata(header));
  const masks = new Map<string, PixelArray>();
  const valid: BandValidity[] = [];
  for (const [i, band] of bands.entries()) {
    const marks = findValidityBand(header, band);
    const key = marks && `${marks.index} ${marks.header === header}`;
    if (marks && !masks.has(key!))
      masks.set(key!, (await readWindow(marks.header, [marks.index], window))[0]!);
    valid.push(bandValidity(pixels[i]!, hole, key === undefined ? undefined : masks.get(key)));
  }
  return valid;
}

/** Reads a complete image; by default all of its bands. `valid`: the pixels of each band that hold data. */
export async function readRaster(
  path: string,
  bands?: number[],
  signal?: AbortSignal,
): Promise<{ header: RasterHeader; bands: PixelArray[]; valid: BandValidity[] }> {
  return readAll(await openRaster(path), bands, signal);
}

/** `readRaster` of an image of a tile file. */
export async function readImage(
  image: ImageFile,
  bands?: number[],
  signal?: AbortSignal,
): ReturnType<typeof readRaster> {
  return readAll(await openImage(image), bands, signal);
}

async function readAll(
  header: RasterHeader,
  bands: number[] | undefined,
  signal: AbortSignal | undefined,
): ReturnType<typeof readRaster> {
  const numbers = bands ?? Array.from({ length: header.bands }, (_, band) => band);
  const all = { column: 0, row: 0, width: header.width, height: header.height };
  const pixels = await readWindow(header, numbers, all, signal);
  return { header, bands: pixels, valid: await readValidity(header, numbers, all, pixels) };
}

async function readInto(reads: ReadRequest[], signal: AbortSignal | undefined): Promise<void> {
  for (const read of reads) checkRequest(read);
  const throughGdal: GdalReadRequest[] = [];
  for (const { header, bands, window, target } of reads) {
    signal?.throwIfAborted();
    if (window.width === 0 || window.height === 0 || bands.length === 0) continue;
    const { blocks } = header;
    if (header.recoding) await readRecoded({ header, bands, window, target }, header.recoding, signal);
    else if (blocks.reader === 'tiff') await readTiff({ ...header, blocks }, bands, window, target);
    else if (blocks.reader === 'hdf5') await readHdf5({ ...header, blocks }, bands, window, target);
    else if (blocks.reader === 'hdf5-cube') await readHdf5Cube({ ...header, blocks }, bands, window, target);
    else if (blocks.reader === 'envi') readEnvi({ ...header, blocks }, bands, window, target);
    else if (blocks.reader === 'mat') await readMat({ ...header, blocks }, bands, window, target);
    else throughGdal.push({ header: { ...header, blocks }, bands, window, target });
  }
  if (throughGdal.length > 0) await readViaGdal(throughGdal, signal);
}

/** Reads the stored numbers, and writes what the table has for each. */
async function readRecoded(
  { header, bands, window, target }: ReadRequest,
  { dataType, table }: NonNullable<RasterHeader['recoding']>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { recoding: _, ...stored } = header;
  const pixels = await readWindow({ ...stored, dataType }, bands, window, signal);
  for (const [band, values] of pixels.entries())
    for (let row = 0, from = 0; row < window.height; row++) {
      const to = target.offset + row * target.stride;
      for (let column = 0; column < window.width; column++, from++)
        target.arrays[band]![to + column] = table[values[from]!]!;
    }
}

function checkRequest({ header, bands, window, target: { arrays, offset, stride } }: ReadRequest): void {
  const { column, row, width, height } = window;
  const inside =
    column >= 0 &&
    row >= 0 &&
    width >= 0 &&
    height >= 0 &&
    column + width <= header.width &&
    row + height <= header.height;
  if (!inside)
    throw windowOutside(header.path, `rows ${row}-${row + height}, columns ${column}-${column + width}`);
  const absent = bands.find((band) => !(band >= 0 && band < header.bands));
  if (absent !== undefined) throw windowOutside(header.path, `band ${absent} (from 0)`);
  const end = offset + (height - 1) * stride + width;
  if (
    arrays.length !== bands.length ||
    offset < 0 ||
    arrays.some((array) => height > 0 && array.length < end)
  ) {
    throw windowOutside(header.path, `pixels for arrays of the given number and size`);
  }
}
