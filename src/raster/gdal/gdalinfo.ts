/** Runs `gdalinfo -json` on a dataset and checks its output. */
import { Semaphore } from '../../async/index.js';
import { gdalFailed } from '../errors.js';
import { formatOfGdalDriver } from './gdal-drivers.js';
import { rejectExternalReferences } from './gdal-external-references.js';
import { runGdal } from './run-gdal.js';

export interface GdalInfo {
  width: number;
  height: number;
  /** WKT 2 and PROJ string; empty without a coordinate reference system. */
  wkt: string;
  proj4: string;
  /** GDAL's order: origin x, xx, xy, origin y, yx, yy. Undefined if the dataset is not georeferenced. */
  geoTransform: number[] | undefined;
  /** Longitude and latitude of the corners, as PROJ computes them: upper left, lower left, lower right, upper right. */
  corners: number[][] | undefined;
  /** Items of the default domain. */
  metadata: Record<string, string>;
  subdatasets: Record<string, string>;
  bands: GdalBand[];
}

export interface GdalBand {
  /** GDAL's name, such as UInt16. */
  type: string;
  signedByte: boolean;
  /** True if its values index a colour table. */
  palette: boolean;
  /** True for an alpha band. */
  alpha: boolean;
  /** Red, green, blue and alpha of each value, 0 to 255. */
  colours: number[][];
  block: [width: number, height: number];
  /** As text, so that nan and inf survive. */
  nodata: string | undefined;
  description: string | undefined;
  /** Its name in a netCDF file. */
  variable: string | undefined;
  scale: number | undefined;
  offset: number | undefined;
}

/** Limit of the output. A header of a few hundred layers has some 100 KB. */
const MAX_JSON_BYTES = 64 * 2 ** 20;

/** Limits concurrent processes, for all inputs together. */
const processes = new Semaphore(4);

/** Describes a dataset that only one driver may open. `path` is the file, for messages. */
export function runGdalInfo(path: string, dataset: string, driver: string): Promise<GdalInfo> {
  return processes.run(() => queryGdalInfo(path, dataset, driver));
}

async function queryGdalInfo(path: string, dataset: string, driver: string): Promise<GdalInfo> {
  await rejectExternalReferences(path, driver);
  const chunks: Uint8Array[] = [];
  const args = ['-json', '-proj4', '-norat', '-nogcp', '-if', driver, dataset];
  const limits = { totalMs: 120_000, outputBytes: MAX_JSON_BYTES };
  const format = formatOfGdalDriver(driver);
  for await (const chunk of runGdal({ program: 'gdalinfo', calls: [{ args, path, format }], limits }))
    chunks.push(chunk);
  const text = Buffer.concat(chunks).toString('utf8');
  try {
    return parseInfo(JSON.parse(text));
  } catch (error) {
    throw gdalFailed.because(error, path, 'gdalinfo', 'an answer that is not understood', text.slice(0, 200));
  }
}

type Json = Record<string, unknown>;

function parseInfo(value: unknown): GdalInfo {
  const info = object(value, 'the answer');
  const [width, height] = numbers(info.size, 2, 'size');
  const system = info.coordinateSystem === undefined ? {} : object(info.coordinateSystem, 'coordinateSystem');
  const domains = info.metadata === undefined ? {} : object(info.metadata, 'metadata');
  return {
    width,
    height,
    wkt: text(system.wkt) ?? '',
    proj4: text(system.proj4) ?? '',
    geoTransform: info.geoTransform === undefined ? undefined : numbers(info.geoTransform, 6, 'geoTransform'),
    corners: cornersOf(info.wgs84Extent),
    metadata: items(domains['']),
    subdatasets: items(domains.SUBDATASETS),
    bands: list(info.bands, 'bands').map(parseBand),
  };
}

/** Corners of a GeoJSON polygon; undefined if a corner has no counterpart on the globe. */
function cornersOf(polygon: unknown): number[][] | undefined {
  if (polygon === undefined) return undefined;
  const [ring] = list(object(polygon, 'wgs84Extent').coordinates, 'coordinates');
  if (!Array.isArray(ring) || ring.length < 4) return undefined;
  return ring.slice(0, 4).map((corner) => numbers(corner, 2, 'a corner'));
}

function parseBand(value: unknown): GdalBand {
  const band = object(value, 'a band');
  const [width, height] = numbers(band.block, 2, 'block');
  const domains = band.metadata === undefined ? {} : object(band.metadata, 'metadata of a band');
  const nodata = band.noDataValue;
  return {
    type: text(band.type) ?? '',
    signedByte: items(domains.IMAGE_STRUCTURE).PIXELTYPE === 'SIGNEDBYTE',
    palette: band.colorInterpretation === 'Palette',
    alpha: band.colorInterpretation === 'Alpha',
    colours: coloursOf(band.colorTable),
    block: [width, height],
    nodata: typeof nodata === 'number' ? String(nodata) : text(nodata),
    description: text(band.description) || undefined,
    variable: items(domains['']).NETCDF_VARNAME,
    scale: finite(band.scale),
    offset: finite(band.offset),
  };
}

function coloursOf(table: unknown): number[][] {
  if (table === undefined) return [];
  const { entries } = object(table, 'colorTable');
  return list(entries, 'the colours').map((entry) => numbers(entry, 4, 'a colour'));
}

function object(value: unknown, what: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${what} is not an object`);
  return value as Json;
}

function list(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) throw new Error(`${what} is not a list`);
  return value;
}

function numbers(value: unknown, count: number, what: string): number[] {
  const found = list(value, what);
  if (found.length !== count || !found.every((item) => typeof item === 'number'))
    throw new Error(`${what} is not ${count} numbers`);
  return found as number[];
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function finite(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** The text items of a metadata domain; empty for XML domains and missing ones. */
function items(domain: unknown): Record<string, string> {
  if (typeof domain !== 'object' || domain === null || Array.isArray(domain)) return {};
  const found = Object.entries(domain).filter(
    (item): item is [string, string] => typeof item[1] === 'string',
  );
  return Object.fromEntries(found);
}
