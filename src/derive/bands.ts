/**
 * Reads bands of a tile at one size: enlarges them by bilinear interpolation, reduces them by the area mean, and takes the nearest pixel
 * for codes. Expressions are evaluated on the resized bands. Requested planes name bands or expressions.
 */
import {
  badExpression,
  evaluateProgram,
  parseBandOrExpression,
  resolveBands,
  unknownBand,
} from '../expressions/index.js';
import type { PixelGrid } from '../grid/index.js';
import {
  allocatePixels,
  areaMean,
  buildControlGrid,
  fillValueFor,
  nodataAsType,
  type PixelArray,
  pixelAreas,
  readImage,
  warp,
} from '../raster/index.js';
import type { TileRecord } from '../storage/index.js';
import type { TensorBand, TensorBandsTask, TileFiles } from './tasks.js';
import { nodataValue, type TileGroup } from './tile.js';

export async function readBandsAtSize({
  tile,
  planes,
  size,
  stored,
}: TensorBandsTask): Promise<PixelArray[]> {
  const pixels = size.width * size.height;
  const dataType = stored?.dataType ?? 'float32';
  const empty = stored ? stored.empty : NaN;
  const made: PixelArray[] = [];
  for (const plane of planes) {
    if (!plane) {
      made.push(allocatePixels(dataType, pixels).fill(empty));
      continue;
    }
    const bands: PixelArray[] = [];
    for (const place of plane.places)
      bands.push(resizeBand(await readBand(tile, place, stored === null), size, empty));
    made.push(
      isBand(plane)
        ? bands[0]
        : Float32Array.from(evaluateProgram(plane.program, bands.map(float64), pixels)),
    );
  }
  return made;
}

const float64 = (pixels: PixelArray) => Float64Array.from(pixels);

/** Returns true if a plane is a band and not an expression. */
export function isBand({ program: { steps } }: TensorBand): boolean {
  return steps.length === 1 && steps[0].code === 'band';
}

interface Band extends PixelGrid {
  pixels: PixelArray;
  /** Undefined if every value is data. */
  nodata: number | undefined;
  codes: boolean;
}

/** Returns stored numbers, or physical values as float32 with NaN for no data. */
async function readBand(
  tile: TileFiles,
  { group: g, band: b }: TensorBand['places'][number],
  physical: boolean,
): Promise<Band> {
  const group = tile.groups[g];
  const { header, bands, valid } = await readImage(group, [b]);
  const { width, height } = header;
  const codes = group.role !== 'data' || group.codes === true || header.palette === true;
  const nodata = nodataValue(group);
  if (!physical) return { width, height, pixels: bands[0], nodata, codes };
  const { scale, offset } = group.bands[b];
  const stored = bands[0];
  const pixels = new Float32Array(stored.length);
  for (let i = 0; i < stored.length; i++) pixels[i] = valid[0]?.[i] === 0 ? NaN : stored[i] * scale + offset;
  return { width, height, pixels, nodata: NaN, codes };
}

/** Resamples a band to another size of the same cell, with `empty` for no data. */
export function resizeBand(band: Band, to: PixelGrid, empty: number): PixelArray {
  const { width, height, pixels, nodata, codes } = band;
  const out = allocatePixels(typeOf(pixels), to.width * to.height);
  const shrinks = to.width < width || to.height < height;
  if (shrinks && !codes) {
    resizeByAreaMean(band, to, out, empty);
    return out;
  }
  const bounds = { west: 0, south: 0, east: 1, north: 1 };
  const transform = { originX: 0, originY: 1, xx: 1 / width, xy: 0, yx: 0, yy: -1 / height };
  const control = buildControlGrid({ bounds, ...to }, (x, y) => [x, y], transform);
  const same = to.width === width && to.height === height;
  const source = {
    pixels,
    window: { column: 0, row: 0, width, height },
    rasterWidth: width,
    rasterHeight: height,
    nodata,
  };
  const valid = new Uint8Array(out.length).fill(1);
  warp(codes || same ? 'nearest' : 'bilinear', source, control, out, valid);
  for (let i = 0; i < out.length; i++) if (valid[i] === 0) out[i] = empty;
  return out;
}

/** The mean of the valid pixels that a larger pixel covers, weighted by area. A pixel holds data if the pixel at its centre does. */
function resizeByAreaMean(band: Band, to: PixelGrid, out: PixelArray, empty: number): void {
  const { width, height, pixels, nodata } = band;
  const isFloat = pixels instanceof Float32Array || pixels instanceof Float64Array;
  const means = areaMean(pixels, pixelAreas(band, to), nodata);
  for (const [at, value] of means.entries()) {
    const row = Math.floor(((Math.floor(at / to.width) + 0.5) * height) / to.height);
    const column = Math.floor((((at % to.width) + 0.5) * width) / to.width);
    const centre = pixels[row * width + column];
    const mean = isFloat ? value : Math.round(value);
    // A mean that equals the nodata value moves to its neighbour.
    const besideHole = mean === nodata ? (mean > 0 ? mean - 1 : mean + 1) : mean;
    out[at] = centre === nodata || Number.isNaN(centre) ? empty : besideHole;
  }
}

const typeOf = (pixels: PixelArray) =>
  pixels.constructor.name.replace('Array', '').toLowerCase() as Parameters<typeof allocatePixels>[0];

/** The value for no data in a tensor of stored numbers. */
export function fillValueOf({
  dataType,
  nodata,
}: TileGroup | { dataType: TileGroup['dataType']; nodata: number | null }) {
  return nodataAsType(dataType, nodata ?? undefined) ?? fillValueFor(dataType, undefined);
}

/** A band that replaces another one, which the tiles of a collection lack. */
export interface BandSubstitute {
  collection: string;
  asked: string;
  taken: string;
}

/** A requested plane. `<collection>/<name>` names a collection only if the cell has tiles of that collection. */
interface BandRequest {
  text: string;
  /** Undefined for all collections. */
  collection: string | undefined;
}

export function parseBandRequests(asked: string, tiles: TileRecord[]): BandRequest {
  const [, collection, text] = /^\s*([^/\s]+)\/(.+)$/.exec(asked) ?? [];
  const isNamed = collection !== undefined && tiles.some((tile) => tile.collection === collection);
  return isNamed ? { text: text.trim(), collection } : { text: asked.trim(), collection: undefined };
}

/** Returns the plane of a tile with its substituted bands, or null if the tile lacks a band. Throws TW_IMAGERY_EXPRESSION. */
export function resolveBandRequest(
  tile: TileRecord,
  { text, collection }: BandRequest,
): { plane: TensorBand; substitutes: BandSubstitute[] } | null {
  if (collection !== undefined && collection !== tile.collection) return null;
  try {
    const resolved = resolveBands([parseBandOrExpression(text, tile.groups)], tile.groups);
    const { programs, indices } = resolved;
    if (indices.length === 0) throw badExpression(0, 'it names no band');
    const substitutes = resolved.substitutes.map((one) => ({ collection: tile.collection, ...one }));
    return { plane: { program: programs[0], places: indices }, substitutes };
  } catch (error) {
    if (unknownBand.is(error)) return null;
    throw error;
  }
}
