/**
 * Cuts cubes out of one cell. A tile of an imaging spectrometer has hundreds of megabytes, so its source is read and its file
 * is written by rows of blocks: memory holds the source pixels of some rows of blocks, and one row of blocks of the tile.
 */

import { rmSync } from 'node:fs';
import {
  type BandValidity,
  bytesPerSample,
  type ControlGrid,
  CUBE_BLOCK_SIDE,
  CubeFile,
  initialMask,
  type PixelArray,
  type PlacedImage,
  type RasterHeader,
  readRowsOfRasters,
  readWindow,
  readWindowInto,
  sliceRows,
  sourceExtent,
  viewPixels,
  type Window,
  warp,
  warpMasked,
} from '../../raster/index.js';
import type { GeoBox } from '../georeferencing.js';
import { isCubeGroup } from '../plan.js';
import { cubeImage, cubeMasks, encodeGroup, encodeMask, imageRecord, placedFile } from './encode.js';
import {
  type CellGroup,
  type CellImage,
  type CubeTask,
  type CutResult,
  type MaskFigures,
  type SourceFiles,
  type SourceRows,
  validityBands,
} from './tasks.js';
import { holdsData, type PixelValidity, packValidity, pixelValidity, tileValidity } from './validity.js';
import { computeMaskCodes, controlGridOf, controlGrids, warpGroup } from './warp.js';

/**
 * Some spectrometers write 0 for pixels that they did not see, although 0 is also a measured value of dark bands, and of bands
 * in which the atmosphere absorbs all light. A detector has seen a pixel if one of its good bands is not 0.
 *
 * Writes `nodata` into all bands of a detector for pixels whose good bands are all 0 or `nodata`, and replaces each 0 in its
 * bad bands. All arrays have the same length. Bands without a detector do not change.
 */
function maskUnseenPixels(
  pixels: PixelArray[],
  bands: { detector: string | undefined; good: boolean }[],
  nodata: number | null,
): void {
  if (nodata === null) return;
  for (const detector of new Set(bands.map((band) => band.detector))) {
    if (detector === undefined) continue;
    const isOwn = (good: boolean) => (_: PixelArray, i: number) =>
      bands[i]!.detector === detector && bands[i]!.good === good;
    const good = pixels.filter(isOwn(true));
    const seen = seenBy(good, nodata);
    for (const band of good) for (let i = 0; i < band.length; i++) if (seen[i] === 0) band[i] = nodata;
    for (const band of pixels.filter(isOwn(false)))
      for (let i = 0; i < band.length; i++) if (seen[i] === 0 || band[i] === 0) band[i] = nodata;
  }
}

/** 1 if one of the bands holds a value. */
function seenBy(bands: PixelArray[], nodata: number): Uint8Array {
  const seen = new Uint8Array(bands[0]?.length ?? 0);
  for (const band of bands)
    for (let i = 0; i < band.length; i++) if (band[i] !== 0 && band[i] !== nodata) seen[i] = 1;
  return seen;
}

/** Rows of blocks [from, to) of the tile, in pixels, and the part of the source that they need. */
interface BlockRowStrip {
  from: number;
  to: number;
  window: Window;
}

type CubeCell = Pick<CellGroup, 'grid' | 'geocode' | 'width' | 'height' | 'dataType' | 'bands'>;

/** Memory for cutting a cube, bytes: the minimum, and the maximum that is useful. */
export function cubeMemoryBounds(cell: CubeCell, source: GeoBox): { least: number; most: number } {
  const control = controlGridOf(cell, source);
  const each = rowsOfBlocks(cell, control, source);
  const whole = planStrips(cell, control, source, Infinity);
  const largest = (strips: BlockRowStrip[]) =>
    Math.max(0, ...strips.map(({ window }) => sourceBytes(cell, window)));
  return { least: outBytes(cell) + largest(each), most: outBytes(cell) + largest(whole) };
}

/** A group of the file, and the pixels that hold data. */
interface CutGroup {
  record: CellImage['record'];
  pixels: PixelValidity;
  /** Set if it is written. */
  place?: PlacedImage;
}

/**
 * Cuts the cubes of a file, which come first, and its other groups. Null, and no file, if no group holds data in the cell; with a mask, if
 * the tile holds none. Throws system errors.
 */
export async function cutCubes(task: CubeTask): Promise<CutResult | null> {
  const { cells, sources, path, mask } = task;
  const file = new CubeFile(path);
  try {
    const groups: CutGroup[] = [];
    const images: CellImage[] = [];
    for (const [g, cell] of cells.entries()) {
      const source = sources[g]!;
      if (isCubeGroup(cell)) {
        groups.push(await cutCube(file, task, cell, source));
        continue;
      }
      const warped = warpGroup(cell, await readSource(cell, source), controlGrids(cell));
      const { image } = encodeGroup(cell, warped);
      groups.push({ record: image.record, pixels: pixelValidity(warped.valid, cell.bands) });
      images.push(image);
    }
    const validity = groups.flatMap(({ pixels }, g) =>
      cells[g]!.role === 'data' ? [packValidity(cells[g]!, pixels)] : [],
    );
    const tile = mask && tileValidity([...validity, ...mask.others], cells[mask.reference]!);
    if (tile ? !holdsData(tile.some) : !groups.some(({ pixels }) => holdsData(pixels.some))) {
      rmSync(path);
      return null;
    }
    const encodedMask = mask && tile && (await makeMask(task, mask, tile.some));
    if (encodedMask) images.push(encodedMask.image);
    const records = [...groups, ...(encodedMask ? [encodedMask.image] : [])];
    const placed = [
      ...groups.flatMap(({ place }) => place ?? []),
      ...images.map(({ bytes }) => file.add(bytes)),
    ];
    return {
      file: { ...placedFile(records, placed), bytes: null },
      validity: mask ? [] : validity,
      mask: encodedMask && { ...encodedMask.figures, coverage: tile!.coverage },
    };
  } finally {
    file.close();
  }
}

async function makeMask(
  { cells, sources }: CubeTask,
  { reference, quality }: NonNullable<CubeTask['mask']>,
  some: BandValidity,
): Promise<{ image: CellImage; figures: MaskFigures }> {
  const cell = cells[reference]!;
  const read: SourceRows[] = [];
  for (const { source, band } of quality) {
    const { bands, nodata } = sources[source]!;
    read.push(await readSource(cell, { nodata, bands: [bands[band]!] }));
  }
  const tables = quality.map(({ codes }, source) => ({ source, band: 0, codes }));
  const initial = initialMask(some, cell.width * cell.height);
  const codes = computeMaskCodes(read, tables, controlGrids(cell), initial);
  const { image, ...figures } = encodeMask(cell, codes);
  return { image, figures };
}

async function cutCube(
  file: CubeFile,
  task: CubeTask,
  cell: CellGroup,
  source: SourceFiles,
): Promise<CutGroup> {
  const { header } = source.bands[0]!;
  const image = cubeImage(cell);
  file.begin(image);
  const control = controlGridOf(cell, header);
  const validity = new ValidityCounter(cell, image.masks > 0 ? validityBands(source).ofBands : null);
  const out = bandsIn(task, cell, 0, cell.width * CUBE_BLOCK_SIDE);
  const room = task.bytes - outBytes(cell);
  for (const strip of planStrips(cell, control, header, room)) {
    const pixels = await readStrip(task, cell, source, strip.window);
    for (let from = strip.from; from < strip.to; from += CUBE_BLOCK_SIDE) {
      const part = sliceRows(control, from, Math.min(from + CUBE_BLOCK_SIDE, strip.to));
      cutRows(cell, pixels, strip.window, header, part, out, validity, from);
      file.addRows(out);
    }
  }
  const size = cell.width * cell.height;
  const percents = validity.counts.map((count) => (100 * count) / size);
  const masks = image.masks > 0 ? cubeMasks(cell, validity.masks()) : [];
  return {
    place: file.finish(masks),
    record: imageRecord(cell, percents),
    pixels: { some: validity.some(), every: validity.every() },
  };
}

/**
 * Determines which pixels of a cube hold data, in some band and in every one that counts (`GroupValidity`). Invariants: `good[i]` is the
 * number of good bands with data at pixel i, `bad[i]` that of bad ones, and `counts[b]` the number of pixels with data in band b.
 */
class ValidityCounter {
  readonly counts: number[];
  private readonly good: Uint16Array;
  private readonly bad: Uint16Array;
  private readonly isGood: boolean[];
  /** The pixels with data by the validity band that marks them, for a cube without a nodata value. */
  private readonly marked = new Map<number | null, Uint8Array>();

  /** `validityOf`: the validity band of each band, for a cube without a nodata value. */
  constructor(
    { width, height, bands }: CubeCell,
    private readonly validityOf: (number | null)[] | null,
  ) {
    this.good = new Uint16Array(width * height);
    this.bad = new Uint16Array(width * height);
    this.counts = bands.map(() => 0);
    this.isGood = bands.map(({ good }) => good !== false);
    for (const number of validityOf ?? []) this.marked.set(number, new Uint8Array(width * height));
  }

  /**
   * Adds rows of a band, starting at pixel `from`. `valid`: 1 for each pixel with data, else 0. `count`: the number of
   * pixels with data.
   */
  add(band: number, valid: Uint8Array, count: number, from: number): void {
    this.counts[band] += count;
    if (this.validityOf) this.marked.get(this.validityOf[band]!)!.set(valid, from);
    if (count === 0) return;
    const bands = this.isGood[band] ? this.good : this.bad;
    for (let i = 0; i < valid.length; i++) bands[from + i] += valid[i]!;
  }

  some(): Uint8Array {
    return Uint8Array.from(this.good, (count, i) => Number(count > 0 || this.bad[i]! > 0));
  }

  every(): Uint8Array {
    const good = this.counts.filter((count, band) => count > 0 && this.isGood[band]).length;
    return Uint8Array.from(this.good, (count) => Number(good > 0 && count === good));
  }

  /** The pixels with data of each band of a cube without a nodata value. */
  masks(): Uint8Array[] {
    return this.validityOf!.map((number) => this.marked.get(number)!);
  }
}

/** Cuts rows of blocks out of all bands; the first row is row `from` of the tile. */
function cutRows(
  cell: CellGroup,
  { arrays, validOf }: StripPixels,
  window: Window,
  { width, height }: RasterHeader,
  control: ControlGrid,
  out: PixelArray[],
  validity: ValidityCounter,
  from: number,
): void {
  const size = control.width * control.height;
  const valid = new Uint8Array(size);
  const nodata = cell.nodata ?? undefined;
  for (const [band, pixels] of arrays.entries()) {
    const input = { pixels, window, rasterWidth: width, rasterHeight: height, nodata };
    const into = out[band]!.subarray(0, size);
    const holds = validOf[band];
    const count = holds
      ? warpMasked(cell.resampling, input, holds, control, into, valid.fill(1))
      : warp(cell.resampling, input, control, into, valid.fill(1));
    validity.add(band, valid, count, from * cell.width);
  }
}

/** The source pixels of a strip. */
interface StripPixels {
  /** One array for each band, in the task's memory. */
  arrays: PixelArray[];
  /** For each band, its validity band (0 = no data), or null if only the nodata value counts. */
  validOf: (PixelArray | null)[];
}

async function readStrip(
  task: CubeTask,
  cell: CellGroup,
  source: SourceFiles,
  window: Window,
): Promise<StripPixels> {
  const arrays = bandsIn(task, cell, outBytes(cell), window.width * window.height);
  if (window.width === 0 || window.height === 0) return { arrays, validOf: [] };
  for (const header of new Set(source.bands.map((band) => band.header))) {
    const bandsOfFile = source.bands.flatMap((band, i) =>
      band.header === header ? [{ index: band.index, into: arrays[i]! }] : [],
    );
    await readWindowInto(
      header,
      bandsOfFile.map(({ index }) => index),
      window,
      bandsOfFile.map(({ into }) => into),
    );
  }
  const bands = source.bands.map(({ detector }, i) => ({ detector, good: cell.bands[i]!.good !== false }));
  maskUnseenPixels(arrays, bands, cell.nodata);
  const { validity, ofBands } = validityBands(source);
  const read: PixelArray[] = [];
  for (const { header, index } of validity) read.push((await readWindow(header, [index], window))[0]!);
  return { arrays, validOf: ofBands.map((at) => (at === null ? null : read[at]!)) };
}

/** Arrays of `pixels` pixels, one for each band, from byte `from` of the task's memory on. */
function bandsIn({ buffer, offset }: CubeTask, cell: CellGroup, from: number, pixels: number): PixelArray[] {
  const each = alignedBytes(cell, pixels);
  return cell.bands.map((_, i) => viewPixels(cell.dataType, buffer, offset + from + i * each, pixels));
}

const alignedBytes = ({ dataType }: CubeCell, pixels: number) =>
  Math.ceil((pixels * bytesPerSample(dataType)) / 8) * 8;

const outBytes = (cell: CubeCell) => cell.bands.length * alignedBytes(cell, cell.width * CUBE_BLOCK_SIDE);

const sourceBytes = (cell: CubeCell, { width, height }: Window) =>
  cell.bands.length * alignedBytes(cell, width * height);

/** Reads the rows of a group that a cell needs. */
async function readSource(cell: CellGroup, { bands, nodata }: SourceFiles): Promise<SourceRows> {
  const { dataType, crs, transform, width, height } = bands[0]!.header;
  const control = controlGridOf(cell, { crs, transform, width, height });
  const [{ window }] = planStrips(
    { ...cell, bands: [] },
    control,
    { crs, transform, width, height },
    Infinity,
  ) as [BlockRowStrip];
  const [rowStart, rowEnd] = [window.row, window.row + window.height];
  const { validity, ofBands } = validityBands({ bands });
  let bytes = 0;
  const planes = [...bands, ...validity].map(({ header, index }) => {
    const offset = bytes;
    bytes += Math.ceil((width * window.height * bytesPerSample(header.dataType)) / 8) * 8;
    return { header, index, offset };
  });
  const buffer = new SharedArrayBuffer(bytes);
  const headers = [...new Set(planes.map(({ header }) => header))];
  const reads = headers.map((header) => {
    const ofHeader = planes.filter((plane) => plane.header === header);
    const into = ofHeader.map(({ offset }) =>
      viewPixels(header.dataType, buffer, offset, width * window.height),
    );
    const indexes = ofHeader.map(({ index }) => index);
    return { header, bands: indexes, rowStart, rowEnd, into, firstRow: rowStart };
  });
  await readRowsOfRasters(reads);
  const stored = planes.map(({ header, offset }) => ({ dataType: header.dataType, offset }));
  const place = { crs, transform, width, height, rowStart, rowEnd };
  return {
    ...{ dataType, nodata, ...place, buffer },
    offsets: stored.slice(0, bands.length).map(({ offset }) => offset),
    validity: ofBands.map((at) => (at === null ? null : stored[bands.length + at]!)),
  };
}

/** Combines rows of blocks while their source pixels fit into `room` bytes; at least one row. */
function planStrips(cell: CubeCell, control: ControlGrid, source: GeoBox, room: number): BlockRowStrip[] {
  const strips: BlockRowStrip[] = [];
  for (const next of rowsOfBlocks(cell, control, source)) {
    const last = strips.at(-1);
    const window = last && unionWindow(last.window, next.window);
    if (window && sourceBytes(cell, window) <= room) Object.assign(last, { to: next.to, window });
    else strips.push(next);
  }
  return strips;
}

function rowsOfBlocks({ height }: CubeCell, control: ControlGrid, source: GeoBox): BlockRowStrip[] {
  return Array.from({ length: Math.ceil(height / CUBE_BLOCK_SIDE) }, (_, i) => {
    const from = i * CUBE_BLOCK_SIDE;
    const to = Math.min((i + 1) * CUBE_BLOCK_SIDE, height);
    return { from, to, window: windowOf(sliceRows(control, from, to), source) };
  });
}

/** Pixels beyond the exact ones: a bilinear neighbour. */
const NEIGHBOUR_MARGIN = 1;

/**
 * The part of the source that a part of the tile needs. Rows and columns are determined separately, even if the others lie
 * beside the source, because `warp` requires this.
 */
function windowOf(control: ControlGrid, { width, height }: GeoBox): Window {
  const { left, top, right, bottom } = sourceExtent(control);
  if (left > right) return EMPTY_WINDOW;
  const clip = (value: number, most: number) => Math.max(0, Math.min(most, value));
  const column = clip(Math.floor(left) - NEIGHBOUR_MARGIN, width);
  const row = clip(Math.floor(top) - NEIGHBOUR_MARGIN, height);
  return {
    column,
    row,
    width: clip(Math.ceil(right) + NEIGHBOUR_MARGIN, width) - column,
    height: clip(Math.ceil(bottom) + NEIGHBOUR_MARGIN, height) - row,
  };
}

/** The window of a part of the tile outside the source's projection. */
const EMPTY_WINDOW: Window = { column: 0, row: 0, width: 0, height: 0 };

function unionWindow(a: Window, b: Window): Window {
  if (a === EMPTY_WINDOW) return b;
  if (b === EMPTY_WINDOW) return a;
  const column = Math.min(a.column, b.column);
  const row = Math.min(a.row, b.row);
  const right = Math.max(a.column + a.width, b.column + b.width);
  const bottom = Math.max(a.row + a.height, b.row + b.height);
  return { column, row, width: right - column, height: bottom - row };
}
