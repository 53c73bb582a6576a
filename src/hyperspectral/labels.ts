/** Labels of pixels: an image of codes, polygons and points with codes, or the tiles of another collection. */

import { extname } from 'node:path';
import { createInflate, deflateSync } from 'node:zlib';
import { SerialQueue } from '../async/index.js';
import { searchTilesOfCell } from '../derive/index.js';
import { messageOf } from '../errors.js';
import { type GridName, gridByName } from '../grid/index.js';
import {
  type BandFile,
  bandFile,
  forEachPixelRun,
  parseZone,
  readCellValues,
  type Zone,
} from '../imagery/index.js';
import type { TileFinder } from '../query/index.js';
import { createTransform, crsFromEpsg, readRaster, readSmallFile } from '../raster/index.js';
import { type Storage, type TileRecord, type TileSource, withPinnedTiles } from '../storage/index.js';
import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../utils/json-schema.js';
import { parseJson } from '../utils/json-text.js';
import { badLabels, noLabelTiles } from './errors.js';

/** Labels of a request. Plain JSON. Codes are 1 to 254; 0 means no label. */
export interface Labels {
  /** Names by code. */
  names?: Record<string, string>;
  raster?: LabelRaster;
  features?: { code: number; geometry: object }[];
  /** Id of a collection with codes in tiles of the same cells. */
  collection?: string;
  /** True if the codes are those of a map that a classifier has made. */
  isMap?: boolean;
}

/** Labels that threads can read. */
interface OpenLabels extends Omit<Labels, 'raster'> {
  raster?: LabelImage;
}

/** The labels of one tile, for worker threads. */
export interface TileLabels extends Omit<OpenLabels, 'collection'> {
  /** Codes of the same cell. */
  file?: BandFile;
}

/** Bytes row by row, compressed by zlib, in base64. */
interface LabelRaster {
  epsg: number;
  /** Geotransform of GDAL: x = t[0] + t[1] column + t[2] row, y = t[3] + t[4] column + t[5] row. */
  transform: number[];
  width: number;
  height: number;
  codes: string;
}

/** An image whose codes are bytes row by row, in shared memory, so that threads need no copies. */
interface LabelImage extends Omit<LabelRaster, 'codes'> {
  codes: Uint8Array;
}

const MAX_CODE = 254;
/** Limit of the compressed codes of a request. */
const MAX_REQUEST_CHARS = 900_000;
const MAX_PIXELS = 2 ** 26;
const MAX_FEATURES = 20_000;
/** Limit for one tile of polygon sides times rows of pixels, plus pixels inside of polygons. */
const MAX_RASTERISATION_STEPS = 1e9;

export const LABELS = {
  ...objectOf(
    {},
    {
      names: { type: 'object', additionalProperties: TEXT },
      raster: objectOf({
        epsg: COUNT,
        transform: { type: 'array', items: NUMBER, minItems: 6, maxItems: 6 },
        width: { type: 'integer', minimum: 1, maximum: 100_000 },
        height: { type: 'integer', minimum: 1, maximum: 100_000 },
        codes: { type: 'string', maxLength: MAX_REQUEST_CHARS },
      }),
      features: {
        ...listOf(
          objectOf({
            code: { type: 'integer', minimum: 1, maximum: MAX_CODE },
            geometry: { type: 'object' },
          }),
        ),
        maxItems: MAX_FEATURES,
      },
      collection: { type: 'string', minLength: 1, maxLength: 64 },
      isMap: { type: 'boolean' },
    },
  ),
  description:
    'Labels: an image of codes 1 to 254 (0 has none), compressed by zlib in base64, geometries with codes, or a collection whose tiles of the same cells hold codes',
};

/** Throws TW_ANALYSIS_LABELS unless the labels are one image, a list of geometries or a collection, and can be read. */
export async function checkLabels({ raster, features, collection }: Labels): Promise<void> {
  if ([raster, features, collection].filter((one) => one !== undefined).length !== 1)
    throw badLabels('they must be either an image, geometries or a collection');
  for (const [i, { geometry }] of (features ?? []).entries()) regionOf(geometry, `feature ${i + 1}`);
  if (!raster) return;
  const [, xx, xy, , yx, yy] = raster.transform;
  if (xx * yy - xy * yx === 0) throw badLabels('the transform of the image has no inverse');
  crsFromEpsg(raster.epsg);
  await inflateCodes(raster, (bytes) => {
    if (bytes.includes(MAX_CODE + 1))
      throw badLabels(`the image holds the code ${MAX_CODE + 1}; codes are 1 to ${MAX_CODE}, 0 for none`);
  });
}

/** `feature` names the feature in an error. Throws TW_ANALYSIS_LABELS. */
function regionOf(geometry: unknown, feature: string): Zone {
  try {
    return parseZone(geometry);
  } catch (error) {
    throw badLabels.because(error, `${feature}: ${messageOf(error)}`);
  }
}

/** Decompresses an image of codes. Throws TW_ANALYSIS_LABELS. */
export async function openLabels({ raster, ...others }: Labels): Promise<OpenLabels> {
  if (!raster) return others;
  const codes = new Uint8Array(new SharedArrayBuffer(raster.width * raster.height));
  await inflateCodes(raster, (bytes, at) => codes.set(bytes, at));
  return { ...others, raster: { ...raster, codes } };
}

const inflating = new SerialQueue();
const CHUNK_BYTES = 2 ** 18;

/**
 * Calls `visit` with parts of the bytes of an image and the number of bytes before each part. Images are decompressed one at a time, and
 * other requests are answered between the parts, because a megabyte of text may expand to `MAX_PIXELS`. Throws TW_ANALYSIS_LABELS and the
 * errors of `visit`.
 */
async function inflateCodes(
  { width, height, codes }: LabelRaster,
  visit: (bytes: Uint8Array, at: number) => void,
): Promise<void> {
  const size = width * height;
  if (size > MAX_PIXELS) throw badLabels(`an image of ${width} x ${height} pixels is too large`);
  return inflating.run(async () => {
    const inflate = createInflate({ chunkSize: CHUNK_BYTES });
    inflate.end(Buffer.from(codes, 'base64'));
    let at = 0;
    try {
      for await (const bytes of inflate as AsyncIterable<Buffer>) {
        if (at + bytes.length > size) throw badLabels('the image has more pixels than its size says');
        visit(bytes, at);
        at += bytes.length;
      }
    } catch (error) {
      throw badLabels.is(error)
        ? error
        : badLabels.because(error, 'the image cannot be decompressed to its size');
    }
    if (at < size) throw badLabels('the image has fewer pixels than its size says');
  });
}

/** Returns a table of the class of each code, counted from 0 in the order of `codes`. */
export function classesOfCodes(codes: readonly number[]): Uint8Array {
  const classes = new Uint8Array(MAX_CODE + 2);
  for (const [i, code] of codes.entries()) classes[code] = i;
  return classes;
}

/** The codes at the centres of the pixels of a cell, row by row. If several geometries overlap, the last one counts. */
export function labelCodes(
  { raster, file, features = [] }: TileLabels,
  cell: { grid: GridName; geocode: string },
  { width, height }: { width: number; height: number },
): Uint8Array {
  if (raster) return rasterCodes(raster, cell, width, height);
  if (file) return fileCodes(file, width, height);
  const out = new Uint8Array(width * height);
  let total = 0;
  const spend = (work: number, pixels: number) => {
    total += work + pixels;
    if (total > MAX_RASTERISATION_STEPS)
      throw badLabels('their polygons have too many sides, or cover too many pixels one over the other');
  };
  const grid = gridByName(cell.grid);
  for (const [i, { code, geometry }] of features.entries()) {
    const region = regionOf(geometry, `feature ${i + 1}`);
    forEachPixelRun(region, grid, cell.geocode, { width, height }, spend, (row, from, to) =>
      out.fill(code, row * width + from, row * width + to),
    );
  }
  return out;
}

/** Codes of a tile of the same cell at the centres of the pixels. Invalid codes and no data are 0. */
function fileCodes(file: BandFile, width: number, height: number): Uint8Array {
  const values = readCellValues(file, width, height);
  return Uint8Array.from(values, (value) => (value >= 1 && value <= MAX_CODE ? value : 0));
}

function rasterCodes(
  raster: LabelImage,
  { grid, geocode }: { grid: GridName; geocode: string },
  width: number,
  height: number,
): Uint8Array {
  const cells = gridByName(grid);
  const { west, south, east, north } = cells.bounds(geocode);
  const { codes } = raster;
  const [x0, xx, xy, y0, yx, yy] = raster.transform;
  const determinant = xx * yy - xy * yx;
  const project = createTransform(crsFromEpsg(cells.epsg), crsFromEpsg(raster.epsg));
  const out = new Uint8Array(width * height);
  for (let row = 0; row < height; row++)
    for (let column = 0; column < width; column++) {
      const [x, y] = project(
        west + ((column + 0.5) / width) * (east - west),
        north - ((row + 0.5) / height) * (north - south),
      );
      const dx = x - x0;
      const dy = y - y0;
      const i = Math.floor((yy * dx - xy * dy) / determinant);
      const j = Math.floor((xx * dy - yx * dx) / determinant);
      if (i >= 0 && j >= 0 && i < raster.width && j < raster.height)
        out[row * width + column] = codes[j * raster.width + i];
    }
  return out;
}

/** Larger files contain more labels than fit into a request. */
const MAX_FILE_BYTES = 200e6;
/** Names of properties with the class of a feature; the first one that is present counts. */
const CLASS_PROPERTIES = ['class', 'label', 'code', 'name', 'id'];

/** Throws TW_ANALYSIS_LABELS and the errors of rasters. */
export async function readLabels(path: string): Promise<Labels> {
  return /^\.(geojson|json)$/i.test(extname(path)) ? readGeoJson(path) : readCodes(path);
}

async function readCodes(path: string): Promise<Labels> {
  const { header, bands } = await readRaster(path);
  const { crs, transform, width, height, nodata, metadata } = header;
  if (bands.length !== 1) throw badLabels(`${path} has ${bands.length} bands, and labels are one`);
  if (crs.epsg === undefined) throw badLabels(`${path} has a coordinate system without an EPSG code`);
  const codes = Uint8Array.from(bands[0], (value) => {
    if (value === nodata || Number.isNaN(value)) return 0;
    if (!Number.isInteger(value) || value < 0 || value > MAX_CODE)
      throw badLabels(`${path} holds ${value}; codes are whole numbers from 1 to ${MAX_CODE}, 0 for none`);
    return value;
  });
  const { originX, originY, xx, xy, yx, yy } = transform;
  const names = classNames(metadata);
  return {
    ...(Object.keys(names).length > 0 && { names }),
    ...(isOwnMap(metadata) && { isMap: true }),
    raster: {
      epsg: crs.epsg,
      width,
      height,
      transform: [originX, xx, xy, originY, yx, yy],
      codes: deflateSync(codes).toString('base64'),
    },
  };
}

/** True for a map that tilewright has made, by the items that derived tiles have. */
const isOwnMap = ({ SOURCE, ANALYSIS }: Record<string, string>) =>
  SOURCE === 'predicted' || /^classify\b/.test(SOURCE ?? ANALYSIS ?? '');

/** Names by code, from the items `CLASS_n` of class maps and from `class names` of ENVI. */
function classNames(metadata: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(metadata).flatMap(([item, name]) => {
      const code = /^CLASS_(\d+)$/.exec(item)?.[1];
      return code && Number(code) > 0 && Number(code) <= MAX_CODE ? [[code, name]] : [];
    }),
  );
}

interface Feature {
  geometry?: object;
  properties?: Record<string, unknown> | null;
}

async function readGeoJson(path: string): Promise<Labels> {
  const document = await parsed(path);
  const { type, features } = document;
  if (type !== 'FeatureCollection' || !Array.isArray(features) || features.length === 0)
    throw badLabels(`${path} is not a FeatureCollection with features`);
  const classes = features.map(({ properties }, i) => {
    const name = CLASS_PROPERTIES.map((key) => properties?.[key]).find(
      (value) => value !== undefined && value !== null,
    );
    if (name === undefined) throw badLabels(`feature ${i + 1} of ${path} has no property "class"`);
    return String(name);
  });
  // Integers are codes, 0 for no label; names are numbered in alphabetical order.
  const names = [...new Set(classes)].sort();
  const areCodes = names.every((name) => /^\d+$/.test(name));
  const tooLarge = areCodes ? names.find((name) => Number(name) > MAX_CODE) : undefined;
  if (tooLarge !== undefined)
    throw badLabels(`${path} has the class ${tooLarge}; codes are 1 to ${MAX_CODE}, 0 for none`);
  if (!areCodes && names.length > MAX_CODE) throw badLabels(`${path} has more than ${MAX_CODE} classes`);
  const codeOf = (name: string) => (areCodes ? Number(name) : names.indexOf(name) + 1);
  return {
    ...(!areCodes && { names: Object.fromEntries(names.map((name) => [`${codeOf(name)}`, name])) }),
    features: features
      .map(({ geometry }, i) => {
        if (!geometry) throw badLabels(`feature ${i + 1} of ${path} has no geometry`);
        regionOf(geometry, `feature ${i + 1} of ${path}`);
        return { code: codeOf(classes[i]), geometry };
      })
      .filter(({ code }) => code > 0),
  };
}

async function parsed(path: string): Promise<{ type?: unknown; features?: Feature[] }> {
  try {
    return parseJson((await readSmallFile(path, MAX_FILE_BYTES)).toString()) as object;
  } catch (error) {
    throw badLabels.because(error, `${path} cannot be read as GeoJSON: ${messageOf(error)}`);
  }
}

/**
 * Passes the labels of a tile to `work`; labels of another collection are those of the nearest date. Returns undefined if that collection
 * has no tile of the cell. Throws TW_ANALYSIS_LABEL_TILES if none of its tiles of the cell has codes.
 */
export async function withLabels<T>(
  { storage, finder }: { storage: Storage; finder: TileFinder },
  labels: OpenLabels,
  tile: TileRecord,
  work: (labels: TileLabels) => Promise<T>,
): Promise<T | undefined> {
  const { collection } = labels;
  if (collection === undefined) return work(labels);
  const cell = { collection, grid: tile.grid, geocode: tile.geocode };
  const found = await searchTilesOfCell(finder, cell, { op: 'and', args: [] });
  if (found.length === 0) return undefined;
  const withCodes = found.filter((one) => CLASS_SOURCES.includes(one.source) && groupOfCodes(one) >= 0);
  if (withCodes.length === 0) throw noLabelTiles(found[0].id);
  const nearest = nearestInTime(withCodes, tile.start);
  const group = groupOfCodes(nearest);
  const read = [{ tile: nearest, groups: [nearest.groups[group]] }];
  return withPinnedTiles(storage, read, () =>
    work({
      names: labels.names,
      file: bandFile(storage, nearest, { group, band: 0 }),
      isMap: nearest.source !== 'raw',
    }),
  );
}

/** Warning of labels that are themselves predictions. */
export const LABELS_OF_MAP =
  'its labels are those of a map that a classifier has made, so the scores show how much two maps agree, not how much they are right';

/** Sources whose codes are classes. Codes of other sources number clusters or spectra of a library. */
const CLASS_SOURCES: TileSource[] = ['raw', 'classify', 'predicted'];

const groupOfCodes = ({ groups }: TileRecord) =>
  groups.findIndex(({ codes, bands }) => codes === true && bands.length === 1);

/** Returns the tile whose start is nearest to `time`; ties go to the lower id. */
function nearestInTime(tiles: readonly TileRecord[], time: number): TileRecord {
  const distance = ({ start }: TileRecord) => Math.abs(start - time);
  return tiles.toSorted((a, b) => distance(a) - distance(b) || (a.id < b.id ? -1 : 1))[0];
}
