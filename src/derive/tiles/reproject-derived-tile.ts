/** Resamples the pixels of a stored group to the pixel grid of another cell. */
import { type GridBounds, type GridName, gridByName, type PixelGrid } from '../../grid/index.js';
import {
  type Affine,
  allocatePixels,
  buildControlGrid,
  type ControlGrid,
  createTransform,
  crsFromEpsg,
  openRaster,
  type PixelArray,
  type PointTransform,
  type RasterHeader,
  type Resampling,
  readWindow,
  sourceExtent,
  type Window,
  warp,
} from '../../raster/index.js';
import { ImageCache } from './derive-tile-image-cache.js';
import type { TileGroupFile } from './read-derive-tile.js';

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
  group: Pick<TileGroupFile, 'path' | 'nodata' | 'dataType'>,
  bands: number[],
  from: CellGeoBox,
  to: CellGeoBox,
  resampling: Resampling,
): Promise<{ bands: PixelArray[]; valid: Uint8Array[] }> {
  const header = await headerOf(group.path);
  const control = buildControlGrid(to, projectionOf(to.grid, from.grid), affineOf(from));
  const window = windowOf(control, header);
  const method = isAligned(from, to) ? 'nearest' : resampling;
  const size = to.width * to.height;
  const pixels = await readCached(header, bands, window);
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
    warp(method, source, control, target, valid[b]);
    return target;
  });
  return { bands: out, valid };
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

/** Headers by path. The files of a version never change. */
const headers = new Map<string, RasterHeader>();
const CACHE_BYTES = 64e6;
const images = new ImageCache(CACHE_BYTES);

async function headerOf(path: string): Promise<RasterHeader> {
  const known = headers.get(path);
  if (known) return known;
  const header = await openRaster(path);
  if (headers.size >= 64) headers.clear();
  headers.set(path, header);
  return header;
}

async function readCached(header: RasterHeader, bands: number[], window: Window): Promise<PixelArray[]> {
  const { path, width, height } = header;
  const key = (band: number) => `${path}\n${band}`;
  const found = new Map<number, PixelArray>();
  const keep = (band: number, pixels: PixelArray) => found.set(band, crop(pixels, width, window));
  for (const band of bands) {
    const known = images.get(key(band));
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
      images.set(key(band), read[i]);
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
