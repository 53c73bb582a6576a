/**
 * Opens rasters through GDAL: headers and layers by gdalinfo, and pixels by gdal_translate, which writes an uncompressed TIFF to a pipe,
 * without a temporary file.
 */

import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import {
  affineOfGdal,
  createTransform,
  crsFromEpsg,
  customCrs,
  datumForEpsg,
  isInvertible,
  type PointTransform,
  pixelToMap,
} from '../crs/crs.js';
import type { Datum } from '../crs/epsg.js';
import { crsFromWkt } from '../crs/wkt.js';
import {
  convertTo,
  corrupt,
  gdalFailed,
  noCrs,
  subdatasetNotFound,
  subdatasetNotNamed,
  unknownCrs,
  unsupported,
} from '../errors.js';
import { type GeoreferencingOverride, georeferenceByCorners, type Pam, placeWithPam } from '../metadata.js';
import { bytesPerSample, DATA_TYPES, parseNodata, viewPixels } from '../pixels/data-types.js';
import { typedKernels } from '../pixels/masks.js';
import type {
  Affine,
  BandTags,
  ColourTable,
  Crs,
  DataType,
  GdalBlocks,
  HeaderOf,
  MultiDatasetFile,
  RasterHeader,
  ReadRequest,
  Subdataset,
  Window,
} from '../raster.js';
import { MAX_BLOCK_BYTES, requireSupportedSize } from '../source.js';
import {
  formatOfGdalDriver,
  GDAL_FORMATS,
  type GdalBand,
  type GdalFileType,
  type GdalInfo,
  runGdal,
  runGdalInfo,
} from './gdal-process.js';
import { type StreamedImage, TiffStreamParser } from './gdal-stream.js';

type GdalHeader = HeaderOf<GdalBlocks>;
export type GdalReadRequest = ReadRequest & { header: GdalHeader };

/** Decoded pixels that one process may hold. Other processes read more bands. */
const MAX_CACHE_BYTES = 2 ** 28;

/** Decodes windows of one raster or more, in order. The bands and windows must lie within the images. */
export async function readViaGdal(reads: GdalReadRequest[], signal: AbortSignal | undefined): Promise<void> {
  const parts = reads.flatMap(splitByCacheSize);
  const memory = parts.map(({ header, bands, window }) => memoryFor(header, bands.length, window));
  const stream = new TiffStreamParser(parts.map(imageOf));
  const output = runGdal({
    program: 'gdal_translate',
    calls: parts.map((part) => ({
      args: translateArgs(part),
      path: part.header.path,
      format: formatOfGdalDriver(part.header.blocks.driver),
    })),
    config: {
      GDAL_SWATH_SIZE: String(Math.max(...memory.map(({ swath }) => swath))),
      GDAL_CACHEMAX: String(
        Math.ceil(Math.max(...memory.map(({ cache }) => cache)) / 2 ** 20) + CACHE_RESERVE_MB,
      ),
    },
    signal,
  });
  for await (const chunk of output) {
    const fault = stream.push(chunk);
    if (fault) throw gdalFailed(parts[stream.image].header.path, 'gdal_translate', fault, '');
  }
  const { header, window } = parts[stream.image];
  if (!stream.complete)
    throw gdalFailed(header.path, 'gdal_translate', `${stream.rows} of ${window.height} rows`, '');
}

/** Splits a read of many bands into parts. */
function splitByCacheSize(read: GdalReadRequest): GdalReadRequest[] {
  const { header, bands, window, target } = read;
  const atOnce = Math.max(1, Math.floor(MAX_CACHE_BYTES / memoryFor(header, 1, window).cache));
  const parts: GdalReadRequest[] = [];
  for (let i = 0; i < bands.length; i += atOnce) {
    const arrays = target.arrays.slice(i, i + atOnce);
    parts.push({ ...read, bands: bands.slice(i, i + atOnce), target: { ...target, arrays } });
  }
  return parts;
}

/** GDAL copies at least this many rows at a time from a part of an image: the blocks of its VRT driver. */
const MIN_SWATH_ROWS = 128;
/** GDAL requires a swath of at least 1 MB. */
const MIN_SWATH_BYTES = 2 ** 20;
/** The cache also holds the rows that are written. */
const CACHE_RESERVE_MB = 8;

/**
 * Memory that a process needs, in bytes. GDAL copies complete rows only if a row of blocks fits into its swath, and only
 * complete rows can be written to a pipe. Its cache must hold all blocks of a swath. Otherwise each block is decoded for every
 * swath that it touches, and the JPEG 2000 driver opens the file for each of them.
 */
function memoryFor(
  { blocks, dataType }: GdalHeader,
  bands: number,
  { column, row, width }: Window,
): { swath: number; cache: number } {
  const across = Math.ceil((column + width) / blocks.width) - Math.floor(column / blocks.width);
  const rowBytes = across * blocks.width * bytesPerSample(dataType) * bands;
  const swath = Math.max(rowBytes * Math.max(blocks.height, MIN_SWATH_ROWS), MIN_SWATH_BYTES);
  const aligned = row % blocks.height === 0 && blocks.height % MIN_SWATH_ROWS === 0;
  return { swath, cache: swath + (aligned ? 0 : rowBytes * blocks.height) };
}

function imageOf({
  header: { dataType },
  window: { width, height },
  target,
}: GdalReadRequest): StreamedImage {
  const { arrays, offset, stride } = target;
  const put = typedKernels[dataType].deinterleave;
  const take = (bytes: Uint8Array, row: number) => {
    const pixels = viewPixels(dataType, bytes.buffer, bytes.byteOffset, width * arrays.length);
    const at = offset + row * stride;
    if (arrays.length === 1) arrays[0].set(pixels, at);
    else for (const [i, out] of arrays.entries()) put(pixels, i, arrays.length, out, at, width);
  };
  return { rowBytes: width * arrays.length * bytesPerSample(dataType), height, take };
}

function translateArgs({ header: { blocks, dataType }, bands, window }: GdalReadRequest): string[] {
  const { column, row, width, height } = window;
  const options = ['STREAMABLE_OUTPUT=YES', 'BIGTIFF=YES', 'ENDIANNESS=LITTLE', 'PROFILE=GeoTIFF'];
  // A strip must not be written in two parts, and the swaths end where the blocks of the file do.
  options.push('INTERLEAVE=PIXEL', 'COMPRESS=NONE', 'BLOCKYSIZE=1');
  // Otherwise pixels of fewer bits, such as the 15 of Sentinel-2, are packed.
  if (dataType.startsWith('uint')) options.push(`NBITS=${bytesPerSample(dataType) * 8}`);
  return [
    '-q',
    ...['-if', blocks.driver, '-of', 'GTiff'],
    ...options.flatMap((option) => ['-co', option]),
    ...bands.flatMap((band) => ['-b', String(band + 1)]),
    ...['-srcwin', column, row, width, height].map(String),
    ...['-norat', '-nogcp', '-mask', 'none', blocks.dataset, '/vsistdout/'],
  ];
}

/** Throws TW_RASTER_NO_CRS. */
function gdalTransform({ geoTransform }: GdalInfo, path: string): Affine {
  if (!geoTransform) throw noCrs(path, 'it has no position');
  const transform = affineOfGdal(geoTransform);
  if (!isInvertible(transform)) throw noCrs(path, 'its pixels have no extent');
  return transform;
}

const NO_SYSTEM = 'it names no coordinate system';
/** GDAL needs a grid mapping. The reader of netCDF-4 also identifies latitudes and longitudes by their attributes. */
const NO_SYSTEM_CLASSIC = `${NO_SYSTEM} (if its axes are latitude and longitude, "nccopy -k nc4 IN.nc OUT.nc" makes a netCDF-4 file, which can be ingested as it is)`;

/** Throws TW_RASTER_NO_CRS, TW_RASTER_UNKNOWN_CRS and TW_RASTER_NOT_EARTH. */
export function gdalCrs(info: GdalInfo, path: string): Crs {
  const { wkt } = info;
  if (wkt === '') throw noCrs(path, info.bands[0]?.variable === undefined ? NO_SYSTEM : NO_SYSTEM_CLASSIC);
  const epsg = Number(/ID\["EPSG",(\d+)\]\]\s*$/.exec(wkt)?.[1]);
  const name = `"${/^\w+\["([^"]*)"/.exec(wkt)?.[1] ?? ''}" of ${path}`;
  // A code that the table lacks has a definition in WKT and as a PROJ string; both are checked.
  const ways = [() => crsFromWkt(wkt, path), () => customCrs(...projDefinitionOf(info), name)];
  if (Number.isFinite(epsg)) ways.unshift(() => crsFromEpsg(epsg));
  for (const [i, way] of ways.entries()) {
    try {
      const crs = way();
      if (crs.epsg !== undefined && i === 0) return crs;
      const { datumErrorMetres = 0 } = crs;
      const allowed = MAX_DIFFERENCE_METRES + (Number.isFinite(datumErrorMetres) ? datumErrorMetres : 0);
      if (maxDifferenceToProj(info, createTransform(crs, 'EPSG:4326')) < allowed) return crs;
    } catch (error) {
      if (!unknownCrs.is(error)) throw error;
    }
  }
  throw unknownCrs(name);
}

/** Splits GDAL's PROJ string into projection and datum. Leaves out shifts by grid files, which the check detects. */
function projDefinitionOf({ proj4, corners }: GdalInfo): [projection: string, datum: Datum] {
  const words = proj4.split(' ').filter((word) => !/^\+(no_defs|type|nadgrids|wktext)/.test(word));
  const isDatum = (word: string) => /^\+(datum|ellps|a|b|rf|R|towgs84|pm)=/.test(word);
  const isKnown = corners !== undefined || /\+(datum|towgs84|R)=|\+ellps=(WGS84|GRS80)/.test(proj4);
  const own = { proj4: words.filter(isDatum).join(' '), errorMetres: isKnown ? 0 : Infinity };
  // PROJ and proj4js shift NAD27 by grid files.
  const datum = words.includes('+datum=NAD27') ? datumForEpsg(NAD27)! : own;
  return [words.filter((word) => !isDatum(word)).join(' '), datum];
}

/** EPSG code of its geographic system. */
const NAD27 = 4267;

/**
 * Limit of the error. A PROJ string holds less than WKT: shifts of datums may be lost, and positions are then wrong by up to
 * about 100 m.
 */
const MAX_DIFFERENCE_METRES = 10;
const METRES_PER_DEGREE = 111_320;

/** The largest distance, in metres, between the corners as projected here and by PROJ; 0 if PROJ can project none. */
function maxDifferenceToProj(
  { corners, geoTransform, width, height }: GdalInfo,
  toGlobe: PointTransform,
): number {
  if (!corners || !geoTransform) return 0;
  const transform = affineOfGdal(geoTransform);
  const places = [
    [0, 0],
    [0, height],
    [width, height],
    [width, 0],
  ];
  const distances = places.map(([column, row], i) => {
    const [lon, lat] = toGlobe(...pixelToMap(transform, column, row));
    const [wantedLon, wantedLat] = corners[i];
    const east = ((((lon - wantedLon + 180) % 360) + 360) % 360) - 180;
    return Math.hypot(east * Math.cos((lat * Math.PI) / 180), lat - wantedLat) * METRES_PER_DEGREE;
  });
  return Math.max(...distances);
}

/** A layer and GDAL's name for it. */
interface GdalSubdataset extends Subdataset {
  dataset: string;
}

/** Lists the layers of a file with several rasters, with GDAL's names. */
export async function listGdalSubdatasets(path: string, kind: 'hdf4' | 'netcdf'): Promise<MultiDatasetFile> {
  const info = await runGdalInfo(path, resolve(path), GDAL_FORMATS[kind].driver);
  const subdatasets = subdatasetsOf(info, path).map(({ dataset: _, ...layer }) => layer);
  return { path, kind, subdatasets, metadata: info.metadata };
}

/** GDAL's domain SUBDATASETS as layers. A file with a single raster has no such domain: the raster is its only layer. */
function subdatasetsOf(info: GdalInfo, path: string): GdalSubdataset[] {
  const file = resolve(path);
  const found: (GdalSubdataset & { group: string })[] = [];
  for (let i = 1; ; i++) {
    const dataset = info.subdatasets[`SUBDATASET_${i}_NAME`];
    if (dataset === undefined) break;
    // GDAL cannot escape a quote within a quoted path.
    if (file.includes('"'))
      throw unsupported(path, 'its path contains a double quote, which GDAL cannot read', 'Rename it.');
    found.push(parseSubdataset(dataset, info.subdatasets[`SUBDATASET_${i}_DESC`] ?? '', file));
  }
  if (found.length === 0 && info.bands.length > 0) return [singleSubdataset(info, file)];
  const layers = withoutCoordinates(found);
  const count = new Map<string, number>();
  for (const { name } of layers) count.set(name, (count.get(name) ?? 0) + 1);
  return layers.map(({ group, ...layer }) => {
    const shared = (count.get(layer.name) ?? 0) > 1;
    return shared ? { ...layer, name: `${group}:${layer.name}` } : layer;
  });
}

/** In netCDF, two-dimensional variables with the latitudes and longitudes of other variables, by their CF standard names. */
function withoutCoordinates<L extends GdalSubdataset>(layers: L[]): L[] {
  const others = layers.filter(
    ({ dataset, description }) =>
      !(dataset.startsWith('NETCDF:') && /^\[\d+x\d+\] (latitude|longitude) \(/.test(description)),
  );
  return others.length > 0 ? others : layers;
}

/**
 * Names are such as HDF4_EOS:EOS_GRID:"path":grid:field, HDF4_SDS:UNKNOWN:"path":index and NETCDF:"path":variable, texts such
 * as [2400x2400] field grid (8-bit unsigned integer).
 */
function parseSubdataset(dataset: string, text: string, file: string): GdalSubdataset & { group: string } {
  const [, sizes = '', title = ''] = /^\[([\dx]*)\] *(.*?)(?: \([^()]*\))?$/.exec(text) ?? [];
  const inFile = dataset.slice(dataset.indexOf(file) + file.length).replace(/^"?:/, '');
  const parts = inFile.split(':');
  const indexed = /^\d+$/.test(inFile);
  return {
    name: indexed ? title : (parts.at(-1) ?? ''),
    group: indexed ? inFile : parts.slice(0, -1).join(':'),
    description: text,
    shape: sizes.split('x').filter(Boolean).map(Number),
    dataset,
  };
}

function singleSubdataset({ bands, width, height }: GdalInfo, file: string): GdalSubdataset {
  const [first] = bands;
  const name = first.variable ?? first.description ?? 'raster';
  const shape = bands.length > 1 ? [bands.length, height, width] : [height, width];
  return { name, description: first.description ?? name, shape, dataset: file };
}

/**
 * Reads the header of a raster through GDAL. `layer` names one of several; a file of several needs it. `position` replaces its
 * georeferencing; `pam` supplies what a file of a single raster lacks. Throws TW_RASTER_NO_GDAL, _GDAL_FAILED, _GDAL_TIMEOUT,
 * _NO_LAYER, _SEVERAL_LAYERS, _UNSUPPORTED, _NO_CRS and _UNKNOWN_CRS.
 */
export async function openViaGdal(
  path: string,
  kind: GdalFileType,
  { layer, ...place }: { layer?: string; position?: GeoreferencingOverride; pam?: Pam } = {},
): Promise<RasterHeader> {
  const { driver, layerDriver } = GDAL_FORMATS[kind];
  const file = resolve(path);
  const info = await runGdalInfo(path, file, driver);
  const layers = subdatasetsOf(info, path);
  const names = layers.map(({ name }) => name);
  const chosen = layer === undefined ? layers[0] : layers.find(({ name }) => name === layer);
  if (!chosen) throw subdatasetNotFound(path, layer ?? '', names);
  if (layer === undefined && layers.length > 1) throw subdatasetNotNamed(path, names);
  if (chosen.dataset === file) return headerOf(info, path, file, driver, place);
  const opener = layerDriver ?? driver;
  return headerOf(await runGdalInfo(path, chosen.dataset, opener), path, chosen.dataset, opener, {
    position: place.position,
  });
}

async function headerOf(
  info: GdalInfo,
  path: string,
  dataset: string,
  driver: string,
  { position, pam }: { position?: GeoreferencingOverride; pam?: Pam },
): Promise<RasterHeader> {
  const { width, height, bands } = info;
  if (![width, height, bands.length].every((size) => Number.isInteger(size) && size > 0))
    throw gdalFailed(path, 'gdalinfo', `a size of ${width} x ${height} x ${bands.length}`, '');
  requireSupportedSize(path, width, height, bands.length);
  const dataType = dataTypeOf(bands, path);
  const [blockWidth, blockHeight] = bands[0].block;
  const rowOfBlocks = Math.ceil(width / blockWidth) * blockWidth * blockHeight * bytesPerSample(dataType);
  if (!(rowOfBlocks > 0 && rowOfBlocks <= MAX_BLOCK_BYTES))
    throw unsupported(
      path,
      `a row of its blocks of ${blockWidth} x ${blockHeight} pixels is more than 1 GiB`,
    );
  if (driver === GDAL_FORMATS.netcdf.driver) requireUnpacked(info, dataType, path);
  // An image of only an alpha band has no data, so the first band never counts as alpha.
  const alpha = bands.findIndex((band, i) => i > 0 && band.alpha);
  return {
    path,
    fileBytes: (await stat(path)).size,
    width,
    height,
    bands: bands.length,
    dataType,
    ...(position
      ? georeferenceByCorners(position, { path, width, height })
      : placeWithPam({ crs: () => gdalCrs(info, path), transform: () => gdalTransform(info, path) }, pam)),
    nodata: nodataOf(bands, dataType, path),
    palette: bands.some((band) => band.palette),
    colours: dataType === 'uint8' && bands.length === 1 ? coloursOf(bands[0]) : undefined,
    ...(alpha > 0 && { alpha }),
    blocks: { reader: 'gdal', driver, dataset, width: blockWidth, height: blockHeight },
    bandTags: bands.map((band) => bandTags(band, path)),
    metadata: info.metadata,
  };
}

const TO_NETCDF4 =
  'Write it as netCDF-4, which is read without GDAL: nccopy -k nc4 IN.nc OUT.nc (Debian package netcdf-bin).';

/**
 * GDAL 3.6 reads packed coordinates of classic netCDF as they are stored, and no packing that is stored as text. Throws
 * TW_RASTER_UNSUPPORTED for both.
 */
function requireUnpacked({ metadata, bands }: GdalInfo, dataType: DataType, path: string): void {
  for (const [key, value] of Object.entries(metadata)) {
    const [, variable, name] = /^(.+)#(scale_factor|add_offset|_Unsigned)$/.exec(key) ?? [];
    const isNeutral =
      name === '_Unsigned' ? !/^true$/i.test(value) : Number(value) === (name === 'add_offset' ? 0 : 1);
    if (name === undefined || isNeutral) continue;
    const { variable: data, scale, offset } = bands[0]!;
    const isRead =
      variable === data &&
      (name === '_Unsigned'
        ? dataType.startsWith('u')
        : (name === 'scale_factor' ? scale : offset) !== undefined);
    if (!isRead) throw unsupported(path, `GDAL does not apply ${name} "${value}" of ${variable}`, TO_NETCDF4);
  }
}

function dataTypeOf(bands: GdalBand[], path: string): DataType {
  // Before GDAL 3.7, signed bytes are bytes with a metadata item.
  const types = new Set(bands.map(({ type, signedByte }) => (signedByte ? 'Int8' : type)));
  if (types.size > 1) throw unsupported(path, 'its bands are of different data types', convertTo('Float64'));
  const [type] = types;
  const name = type === 'Byte' ? 'uint8' : type.toLowerCase();
  const dataType = DATA_TYPES.find((known) => known === name);
  if (!dataType)
    throw unsupported(
      path,
      `its pixels are of type ${type}`,
      /^C(Int16|Int32|Float32)$/.test(type)
        ? `${convertTo('Float32')} This keeps the real part.`
        : convertTo('Float64'),
    );
  return dataType;
}

function nodataOf(bands: GdalBand[], dataType: DataType, path: string): number | undefined {
  const values = new Set(bands.map(({ nodata }) => nodata));
  if (values.size > 1)
    throw unsupported(
      path,
      'its bands have different nodata values',
      'Write each band to a file: gdal_translate -b N IN BAND_N.tif.',
    );
  return parseNodata(bands[0].nodata, dataType);
}

/** In the order of TIFF's ColorMap; values without a colour are black. */
function coloursOf({ palette, colours }: GdalBand): ColourTable | undefined {
  if (!palette || colours.length === 0) return undefined;
  return [0, 1, 2].flatMap((part) => Array.from({ length: 256 }, (_, i) => 257 * (colours[i]?.[part] ?? 0)));
}

function bandTags({ description, scale, offset }: GdalBand, path: string): BandTags {
  for (const [name, value] of Object.entries({ scale, offset }))
    if (value !== undefined && !Number.isFinite(value))
      throw corrupt(
        path,
        `its ${name} is not a number`,
        'Set it with gdal_translate -a_scale SCALE -a_offset OFFSET.',
      );
  return {
    ...(description === undefined ? {} : { description }),
    ...(scale === undefined ? {} : { scale }),
    ...(offset === undefined ? {} : { offset }),
  };
}
