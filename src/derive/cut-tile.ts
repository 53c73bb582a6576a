/**
 * Cuts a cell out of one or more tiles of a scene, and resamples their pixels to its pixel grid. A thread keeps the images that it has read
 * recently.
 */

import { type GridBounds, type GridName, gridByName, type PixelGrid } from '../grid/index.js';
import { encodeGroup, encodeMask, joinTile, tileValidity } from '../ingest/index.js';
import {
  type Affine,
  allocatePixels,
  buildControlGrid,
  type ControlGrid,
  createTransform,
  crsFromEpsg,
  fillValueFor,
  findValidityBand,
  type ImageFile,
  imageKey,
  Mask,
  openImage,
  type PixelArray,
  type PointTransform,
  type RasterHeader,
  type Resampling,
  readWindow,
  sourceExtent,
  type Window,
  warp,
  warpMasked,
} from '../raster/index.js';
import { noMask } from './errors.js';
import { codesOfData, otherDatesShare, PROVENANCE_GROUP } from './gaps.js';
import type { CutTileTask, MadeTile, TileFiles } from './tasks.js';
import { cellGroup, type TileGroup } from './tile.js';

/** Returns null if the cell holds no data. */
export async function cutTile({ tile, sources, sizes }: CutTileTask): Promise<MadeTile | null> {
  const [first] = sources;
  const made = await Promise.all(first.groups.map((group, g) => cutGroup(tile, sources, group, sizes[g])));
  const mask = made.find(({ group }) => group.role === 'mask');
  if (!mask) throw noMask(first.geocode);
  const images = made
    .filter(({ group }) => group.role !== 'mask')
    .map(({ cell, bands, valid }) => ({ cell, ...encodeGroup(cell, { bands, valid }) }));
  const data = images.filter(({ cell }) => cell.role === 'data').map(({ validity }) => validity);
  const { some, coverage } = tileValidity(data, mask.cell);
  if (some?.includes(1) === false) return null;
  const codes = codesOfData(mask.bands[0] as Uint8Array, some, mask.cell);
  const { image, ...figures } = encodeMask(mask.cell, codes);
  const tileImages = joinTile([...images.map((encoded) => encoded.image), image]);
  const used = Array.from(sources.keys());
  // The number of the base is 0 in each source.
  const provenance = made.find(({ group }) => group.name === PROVENANCE_GROUP)?.bands ?? [];
  return { ...tileImages, coverage, ...figures, ...otherDatesShare(codes, provenance as Uint8Array[]), used };
}

/** Makes a group of the new tile from the groups of the same name in all sources. */
async function cutGroup(tile: CutTileTask['tile'], sources: TileFiles[], group: TileGroup, size: PixelGrid) {
  const cell = cellGroup(tile, { group, header: await openImage(group) }, size);
  const to = geoBoxOfCell(tile.grid, tile.geocode, size);
  const pixels = size.width * size.height;
  const nodata = group.role === 'mask' ? Mask.nodata : group.nodata;
  const empty = fillValueFor(group.dataType, nodata ?? undefined);
  let joined: { bands: PixelArray[]; valid: Uint8Array[] } | undefined;
  const blank = () => ({
    bands: group.bands.map(() => allocatePixels(group.dataType, pixels).fill(empty)),
    valid: group.bands.map(() => new Uint8Array(pixels)),
  });
  for (const source of sources) {
    const own = source.groups.find(({ name }) => name === group.name);
    if (!own || own.bands.length !== group.bands.length) continue;
    const from = geoBoxOfCell(source.grid, source.geocode, own);
    const taken = await reprojectBands(own, [...own.bands.keys()], from, to, cell.resampling);
    if (sources.length === 1) joined = taken;
    else {
      joined ??= blank();
      for (const [b, band] of joined.bands.entries())
        copyValidPixels(band, joined.valid[b]!, taken.bands[b], taken.valid[b]);
    }
  }
  return { group, cell, ...(joined ?? blank()) };
}

function copyValidPixels(out: PixelArray, outValid: Uint8Array, pixels: PixelArray, valid: Uint8Array): void {
  for (let i = 0; i < out.length; i++) {
    if (valid[i] === 0) continue;
    out[i] = pixels[i];
    outValid[i] = 1;
  }
}

/** Images that were unused for this time may be dropped before the memory is full. */
const UNUSED_AFTER_MS = 10_000;
/** Alignment of the largest pixel type. */
const ALIGNMENT_BYTES = 8;

interface CachedImage {
  begin: number;
  end: number;
  pixels: PixelArray;
  usedAt: number;
}

/**
 * Cache of the images that a thread has read recently: many cells are cut out of one file.
 *
 * A ring buffer of one ArrayBuffer; the oldest images are dropped first. Single arrays would stay in memory until V8 collects them, which
 * it does only when a thread has 64 MB of them. Once all images are unused, writing begins at the start again.
 *
 * Invariant: `entries` are in the order in which they were written, and do not overlap.
 */
export class ImageCache {
  private memory: ArrayBuffer | undefined;
  private readonly entries = new Map<string, CachedImage>();
  private end = 0;

  constructor(
    private readonly bytes: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Returns pixels that are good until the next `set`. */
  get(key: string): PixelArray | undefined {
    const entry = this.entries.get(key);
    if (entry) entry.usedAt = this.now();
    return entry?.pixels;
  }

  /** Copies pixels, and drops the oldest images to make room. Does nothing if the image is larger than the memory. */
  set(key: string, pixels: PixelArray): void {
    const length = Math.ceil(pixels.byteLength / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
    this.entries.delete(key);
    if (length === 0 || length > this.bytes) return;
    this.dropOldest(({ usedAt }) => this.now() - usedAt > UNUSED_AFTER_MS);
    // A thread that is rarely used then touches the same few pages.
    if (this.entries.size === 0 || this.end + length > this.bytes) {
      // Images after the end are older than those before it; without them the order stays that of writing.
      this.dropOldest((entry) => entry.begin >= this.end);
      this.end = 0;
    }
    const [begin, end] = [this.end, this.end + length];
    this.dropOldest((entry) => entry.begin < end && begin < entry.end);
    this.memory ??= new ArrayBuffer(this.bytes);
    const copy = viewOf(pixels, this.memory, begin);
    copy.set(pixels as never);
    this.entries.set(key, { begin, end, pixels: copy, usedAt: this.now() });
    this.end = end;
  }

  private dropOldest(isDue: (entry: CachedImage) => boolean): void {
    for (const [key, entry] of this.entries) {
      if (!isDue(entry)) return;
      this.entries.delete(key);
    }
  }
}

/** An array of the same type and length. */
function viewOf(pixels: PixelArray, memory: ArrayBuffer, offset: number): PixelArray {
  const Type = pixels.constructor as new (memory: ArrayBuffer, offset: number, length: number) => PixelArray;
  return new Type(memory, offset, pixels.length);
}

/** The position of an image. */
export interface CellGeoBox extends PixelGrid {
  grid: GridName;
  bounds: GridBounds;
}

export function geoBoxOfCell(grid: GridName, geocode: string, { width, height }: PixelGrid): CellGeoBox {
  return { grid, bounds: gridByName(grid).bounds(geocode), width, height };
}

/**
 * Resamples bands of a group from one cell to another. `valid`: 1 for pixels of the band that hold data. Pixels are copied if the pixels
 * of both cells coincide. Pixels outside of `from` hold no data.
 */
export async function reprojectBands(
  group: ImageFile & Pick<TileGroup, 'nodata' | 'dataType'>,
  bands: number[],
  from: CellGeoBox,
  to: CellGeoBox,
  resampling: Resampling,
): Promise<{ bands: PixelArray[]; valid: Uint8Array[] }> {
  const header = await headerOf(group);
  const control = buildControlGrid(to, projectionOf(to.grid, from.grid), affineOf(from));
  const window = windowOf(control, header);
  const method = isAligned(from, to) ? 'nearest' : resampling;
  const size = to.width * to.height;
  const pixels = await readCached(header, bands, window);
  const masks = await masksOf(header, bands, window);
  const valid = bands.map(() => new Uint8Array(size).fill(1));
  const out = pixels.map((band, b) => {
    const target = allocatePixels(header.dataType, size);
    const source = {
      pixels: band,
      window,
      rasterWidth: header.width,
      rasterHeight: header.height,
      nodata: group.nodata ?? undefined,
    };
    const mask = masks[b];
    if (mask) warpMasked(method, source, mask, control, target, valid[b]);
    else warp(method, source, control, target, valid[b]);
    return target;
  });
  return { bands: out, valid };
}

/** The mask of each band, at the pixels of a window; undefined for bands without a mask. */
async function masksOf(
  header: RasterHeader,
  bands: number[],
  window: Window,
): Promise<(PixelArray | undefined)[]> {
  const marks = bands.map((band) => findValidityBand(header, band));
  const [first] = marks;
  if (!first) return [];
  const indexes = [...new Set(marks.map((mark) => mark!.index))];
  const read = await readCached(first.header, indexes, window);
  return marks.map((mark) => read[indexes.indexOf(mark!.index)]);
}

function projectionOf(from: GridName, to: GridName): PointTransform {
  if (from === to) return (x, y) => [x, y];
  return createTransform(`EPSG:${gridByName(from).epsg}`, crsFromEpsg(gridByName(to).epsg));
}

function affineOf({ bounds: { west, south, east, north }, width, height }: CellGeoBox): Affine {
  return {
    originX: west,
    originY: north,
    xx: (east - west) / width,
    xy: 0,
    yx: 0,
    yy: (south - north) / height,
  };
}

/** A smaller shift or stretch is a rounding error. */
const ALIGNMENT_TOLERANCE_PX = 1e-6;

/** Returns true if the pixels of both cells coincide. */
export function isAligned(from: CellGeoBox, to: CellGeoBox): boolean {
  if (from.grid !== to.grid) return false;
  const isWhole = (value: number) => Math.abs(value - Math.round(value)) < ALIGNMENT_TOLERANCE_PX;
  const along = (a: [number, number], countA: number, b: [number, number], countB: number) => {
    const pixel = (a[1] - a[0]) / countA;
    const stretch = (b[1] - b[0]) / pixel - countB;
    return Math.abs(stretch) < ALIGNMENT_TOLERANCE_PX && isWhole((b[0] - a[0]) / pixel);
  };
  const [a, b] = [from.bounds, to.bounds];
  return (
    along([a.west, a.east], from.width, [b.west, b.east], to.width) &&
    along([-a.north, -a.south], from.height, [-b.north, -b.south], to.height)
  );
}

/** The pixels that the destination needs, with their neighbours; at least one pixel. */
function windowOf(control: ControlGrid, { width, height }: RasterHeader): Window {
  const { left, top, right, bottom } = sourceExtent(control);
  const span = (low: number, high: number, count: number): [number, number] => {
    const first = Math.min(Math.max(0, Math.floor(low) - 2), count - 1);
    return [first, Math.max(first + 1, Math.min(count, Math.ceil(high) + 2))];
  };
  const [column, right_] = span(left, right, width);
  const [row, bottom_] = span(top, bottom, height);
  return { column, row, width: right_ - column, height: bottom_ - row };
}

/** Headers by the key of their image. The files of a version never change. */
const headersByImage = new Map<string, RasterHeader>();
const CACHE_BYTES = 64e6;
const imageCache = new ImageCache(CACHE_BYTES);

async function headerOf(image: ImageFile): Promise<RasterHeader> {
  const key = imageKey(image);
  const cachedHeader = headersByImage.get(key);
  if (cachedHeader) return cachedHeader;
  const header = await openImage(image);
  if (headersByImage.size >= 64) headersByImage.clear();
  headersByImage.set(key, header);
  return header;
}

async function readCached(header: RasterHeader, bands: number[], window: Window): Promise<PixelArray[]> {
  const { path, width, height, blocks } = header;
  // A file has several images.
  const image = 'directory' in blocks ? blocks.directory : 0;
  const key = (band: number) => `${path}\n${image}\n${band}`;
  const found = new Map<number, PixelArray>();
  const keep = (band: number, pixels: PixelArray) => found.set(band, crop(pixels, width, window));
  for (const band of bands) {
    const known = imageCache.get(key(band));
    if (known) keep(band, known);
  }
  const missing = bands.filter((band) => !found.has(band));
  if (missing.length > 0) {
    const whole = { column: 0, row: 0, width, height };
    const sample = allocatePixels(header.dataType, 1).BYTES_PER_ELEMENT;
    if (missing.length * width * height * sample > CACHE_BYTES / 2) return readWindow(header, bands, window);
    const read = await readWindow(header, missing, whole);
    for (const [i, band] of missing.entries()) {
      keep(band, read[i]);
      imageCache.set(key(band), read[i]);
    }
  }
  return bands.map((band) => found.get(band)!);
}

function crop(pixels: PixelArray, width: number, window: Window): PixelArray {
  const out = pixels.slice(0, window.width * window.height);
  for (let row = 0; row < window.height; row++) {
    const from = (window.row + row) * width + window.column;
    out.set(pixels.subarray(from, from + window.width), row * window.width);
  }
  return out;
}
