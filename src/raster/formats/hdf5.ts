/**
 * Opens datasets of HDF5 and netCDF-4 files as rasters, lists them, and reads their pixels by hyperslabs; reads small datasets, and the
 * georeferencing of HDF-EOS5 grids.
 */

import { stat } from 'node:fs/promises';
import { crsFromEpsg } from '../crs/crs.js';
import { corrupt, noCrs, unsupported } from '../errors.js';
import { odlList, odlNodes, parseOdl } from '../metadata.js';
import { bytesPerSample, fillValueFor } from '../pixels/data-types.js';
import type {
  BandTags,
  Crs,
  Hdf5Blocks,
  HeaderOf,
  MultiDatasetFile,
  PixelArray,
  RasterHeader,
  ReadTarget,
  Subdataset,
  Window,
} from '../raster.js';
import { MAX_SIDE_PIXELS } from '../source.js';
import { cfGeoreferencing, type Georeferencing, gridGeoreferencing } from './cf.js';
import {
  isMissing,
  missingData,
  packingOf,
  readHyperslab,
  readStoredDataset,
  replaceMissing,
  type StoredDataset,
  TO_GEOTIFF,
} from './hdf5-dataset.js';
import { type Attributes, type Hdf5File, TypeClass, withHdf5 } from './hdf5-file.js';

export type Hdf5Header = HeaderOf<Hdf5Blocks>;

/** The library's memory holds one piece at a time. */
const HYPERSLAB_BYTES = 2 ** 24;

/**
 * Reads a window of some bands (from 0). The window must lie in the raster and fit the target.
 * Throws TW_RASTER_UNREADABLE and _CORRUPT.
 */
export async function readHdf5(
  header: Hdf5Header,
  bands: number[],
  window: Window,
  { arrays, ...place }: ReadTarget,
): Promise<void> {
  await withHdf5(header.path, (file) => {
    for (const [i, band] of bands.entries()) readBand(file, header, band, window, arrays[i], place);
  });
}

function readBand(
  file: Hdf5File,
  header: Hdf5Header,
  band: number,
  { column, row, width, height }: Window,
  out: PixelArray,
  { offset, stride }: Omit<ReadTarget, 'arrays'>,
): void {
  const { blocks, path, dataType } = header;
  const nodata = fillValueFor(dataType, header.nodata);
  const dataset = file.dataset(blocks.dataset);
  const shape = dataset && file.metadata(dataset).shape;
  if (!shape || shape.at(-2) !== header.height || shape.at(-1) !== header.width) {
    throw corrupt(path, `${blocks.dataset} is not as it was when it was opened`);
  }
  const first = blocks.bottomUp ? header.height - row - height : row;
  const leading = indexOf(band, shape.slice(0, -2));
  for (const [from, to] of planHyperslabs(
    first,
    first + height,
    blocks.height,
    width * bytesPerSample(dataType),
  )) {
    const ranges: [number, number][] = [...leading, [from, to], [column, column + width]];
    const pixels = readHyperslab(file, dataset, dataType, ranges);
    if (pixels.length !== (to - from) * width) throw corrupt(path, `rows ${from}-${to} cannot be read`);
    if (blocks.missing) replaceMissing(pixels, blocks.missing, nodata);
    for (let y = from; y < to; y++) {
      const target = blocks.bottomUp ? first + height - 1 - y : y - first;
      const start = (y - from) * width;
      out.set(pixels.subarray(start, start + width), offset + target * stride);
    }
  }
}

/** The indexes of a band in the dimensions before rows and columns, the last of which runs fastest. */
function indexOf(band: number, dimensions: number[]): [number, number][] {
  const ranges: [number, number][] = [];
  for (const size of dimensions.toReversed()) {
    ranges.unshift([band % size, (band % size) + 1]);
    band = Math.floor(band / size);
  }
  return ranges;
}

/** Runs of rows that end at block boundaries, so that no block is decoded twice. */
function* planHyperslabs(
  from: number,
  to: number,
  blockHeight: number,
  rowBytes: number,
): Generator<[number, number]> {
  const rows = Math.max(1, Math.floor(HYPERSLAB_BYTES / (rowBytes * blockHeight))) * blockHeight;
  while (from < to) {
    const end = Math.min(to, Math.floor(from / rows) * rows + rows);
    yield [from, end];
    from = end;
  }
}

/** Limit of a list: no instrument has more bands. */
const MAX_LISTED_VALUES = 16_384;

/**
 * The numbers or texts of one-dimensional datasets, by path; missing datasets have no entry. Throws TW_RASTER_UNREADABLE, and
 * TW_RASTER_CORRUPT for datasets of another shape.
 */
export function readHdf5Lists(path: string, datasets: string[]): Promise<Map<string, (number | string)[]>> {
  return withHdf5(path, (file) => {
    const lists = new Map<string, (number | string)[]>();
    for (const name of datasets) {
      const dataset = file.dataset(name);
      if (!dataset) continue;
      const { shape, type } = file.metadata(dataset);
      const [size = 0, ...others] = shape ?? [];
      if (size === 0 || size > MAX_LISTED_VALUES || others.length > 0)
        throw corrupt(path, `${name} is ${shape?.join(' x ') || 'empty'}, and no list`);
      if (type === TypeClass.string) lists.set(name, file.texts(name) ?? []);
      else lists.set(name, Array.from(file.slice(dataset, [[0, size]]), Number));
    }
    return lists;
  });
}

/**
 * Numbers of a two-dimensional dataset at positions (row, column); NaN for missing data. Throws the errors of `openRaster`,
 * and TW_RASTER_CORRUPT.
 */
export function readHdf5Points(path: string, layer: string, places: [number, number][]): Promise<number[]> {
  return withHdf5(path, (file) => {
    const { dataset, dataType, types } = readStoredDataset(file, layer);
    const { nodata, missing } = missingData(file, layer, types);
    return places.map(([row, column]) => {
      const pixel: [number, number][] = [
        [row, row + 1],
        [column, column + 1],
      ];
      const found = readHyperslab(file, dataset, dataType, pixel);
      if (found.length === 0) throw corrupt(path, `${layer} cannot be read`);
      const [value] = found;
      return value === nodata || (missing && isMissing(value, missing)) ? NaN : value;
    });
  });
}

const STRUCT_METADATA_PREFIX = '/HDFEOS INFORMATION/StructMetadata.';

/** The structural metadata, which long files split into parts; undefined if the file is not HDF-EOS. */
function readStructMetadata(file: Hdf5File): string | undefined {
  const parts: string[] = [];
  for (let i = 0; ; i++) {
    const part = file.text(`${STRUCT_METADATA_PREFIX}${i}`);
    if (part === undefined) return parts.length > 0 ? parts.join('') : undefined;
    parts.push(part);
  }
}

/**
 * Georeferencing of an HDF-EOS5 grid by its structural metadata (HDF-EOS5 Data Model, File Format and Library, ESDS-RFC-008). Undefined if
 * the dataset belongs to no grid.
 */
function eosGeoreferencing(file: Hdf5File, dataset: string): Georeferencing | undefined {
  const name = /^\/HDFEOS\/GRIDS\/([^/]+)\//.exec(dataset)?.[1];
  const structure = name === undefined ? undefined : readStructMetadata(file);
  if (structure === undefined) return undefined;
  const grids = [...odlNodes(parseOdl(structure))].filter(({ values }) => values.GridName === name);
  if (grids.length === 0)
    throw noCrs(file.path, `its structural metadata does not describe the grid ${name}`, TO_GEOTIFF);
  const { values } = grids[0];
  const numbers = (key: string) => odlList(values[key] ?? '').map(Number);
  const [width] = numbers('XDim');
  const [height] = numbers('YDim');
  const shape = file.metadata(file.dataset(dataset)!).shape ?? [];
  if (shape.at(-1) !== width || shape.at(-2) !== height) {
    throw corrupt(
      file.path,
      `${dataset} is ${shape.join(' x ')}, but its grid has ${height} rows of ${width} pixels`,
    );
  }
  const corners = [...numbers('UpperLeftPointMtrs'), ...numbers('LowerRightMtrs')];
  if (corners.length !== 4 || !corners.every(Number.isFinite)) {
    throw noCrs(file.path, `the corners of the grid ${name} cannot be read`, TO_GEOTIFF);
  }
  const geographic = values.Projection === 'HE5_GCTP_GEO';
  const packed = geographic && corners.some((corner) => Math.abs(corner) > 360);
  const [left, top, right, bottom] = packed ? corners.map(packedDmsToDegrees) : corners;
  const x = { start: left, step: (right - left) / width };
  const y = { start: top, step: (bottom - top) / height };
  if (!(x.step > 0 && y.step < 0))
    throw noCrs(file.path, `the corners of the grid ${name} span no area`, TO_GEOTIFF);
  const crs = geographic ? crsFromEpsg(4326) : crsOfGrid(file.path, values);
  return gridGeoreferencing(crs, x, storedFrom(file.path, values.GridOrigin, y, bottom), height);
}

/** Rows go south from the upper left pixel unless the grid declares that its first pixel is the lower left one. */
function storedFrom(
  path: string,
  origin: string | undefined,
  y: { start: number; step: number },
  bottom: number,
) {
  if (origin === undefined || origin === 'HE5_HDFE_GD_UL') return y;
  if (origin === 'HE5_HDFE_GD_LL') return { start: bottom, step: -y.step };
  throw unsupported(path, `its first pixel is at ${origin}`, TO_GEOTIFF);
}

/** Supports only the sinusoidal projection of VIIRS and MODIS tiles. */
function crsOfGrid(path: string, values: Record<string, string>): Crs {
  if (values.Projection !== 'HE5_GCTP_SNSOID')
    throw unsupported(path, `its projection is ${values.Projection}`, TO_GEOTIFF);
  const [radius, , , , meridian = 0, , east = 0, north = 0] = odlList(values.ProjParams ?? '').map(Number);
  if (!(radius > 0) || ![radius, meridian, east, north].every(Number.isFinite)) {
    throw noCrs(path, 'its sinusoidal projection does not say the radius of the sphere', TO_GEOTIFF);
  }
  const parameters = `+lon_0=${packedDmsToDegrees(meridian)} +x_0=${east} +y_0=${north} +a=${radius} +b=${radius}`;
  return { epsg: undefined, proj4: `+proj=sinu ${parameters} +units=m +no_defs`, geographic: false };
}

/** GCTP packs degrees as DDDMMMSSS.SS: 75 degrees 30 minutes are 75030000. */
export function packedDmsToDegrees(packed: number): number {
  const size = Math.abs(packed);
  const degrees = Math.floor(size / 1e6);
  const minutes = Math.floor((size - degrees * 1e6) / 1e3);
  const seconds = size - degrees * 1e6 - minutes * 1e3;
  return Math.sign(packed) * (degrees + minutes / 60 + seconds / 3600);
}

/** A year of hours is 8,784 bands. */
const MAX_BANDS = 16_384;
/** Datasets without chunks are read in blocks of about this size. */
const CONTIGUOUS_BLOCK_BYTES = 2 ** 20;

/**
 * The header of a dataset. The dimensions before rows and columns count the bands, the last of them fastest. Throws
 * TW_RASTER_UNREADABLE, _CORRUPT, _UNSUPPORTED, _NO_LAYER, _NO_CRS and _UNKNOWN_CRS.
 */
export async function openHdf5(path: string, layer: string): Promise<RasterHeader> {
  const header = await withHdf5(path, (file) => headerOf(file, layer));
  return { ...header, fileBytes: (await stat(path)).size };
}

function headerOf(file: Hdf5File, layer: string): Omit<RasterHeader, 'fileBytes'> {
  const { path } = file;
  const stored = readStoredDataset(file, layer);
  const { shape, dataType } = stored;
  if (shape.length < 2)
    throw unsupported(path, `${layer} has fewer than two dimensions`, 'Name another layer.');
  const [height, width] = shape.slice(-2);
  const bands = shape.slice(0, -2).reduce((product, size) => product * size, 1);
  if (width > MAX_SIDE_PIXELS || height > MAX_SIDE_PIXELS || bands > MAX_BANDS) {
    throw unsupported(
      path,
      `the size of ${layer} is ${shape.join(' x ')}`,
      'Cut it with ncks -d DIMENSION,FIRST,LAST IN.nc OUT.nc (Debian package nco).',
    );
  }
  const { nodata, missing, warnings } = missingData(file, layer, stored.types);
  const tags = tagsOf(file, layer);
  const { crs, transform, bottomUp } = eosGeoreferencing(file, layer) ?? cfGeoreferencing(file, layer);
  return {
    path,
    width,
    height,
    bands,
    dataType,
    crs,
    transform,
    nodata,
    blocks: { reader: 'hdf5', ...blockSize(stored), dataset: layer, bottomUp, ...(missing && { missing }) },
    bandTags: Array.from({ length: bands }, () => tags),
    metadata: itemsOf(file.attributes(layer)),
    ...(warnings.length > 0 && { warnings }),
  };
}

function blockSize({ shape, dataType, chunks }: StoredDataset) {
  const [height, width] = shape.slice(-2);
  if (!chunks) {
    const rows = Math.floor(CONTIGUOUS_BLOCK_BYTES / (width * bytesPerSample(dataType)));
    return { width, height: Math.min(height, Math.max(1, rows)) };
  }
  const [rows, columns] = chunks.slice(-2);
  return { width: Math.min(width, columns), height: Math.min(height, rows) } satisfies Partial<Hdf5Blocks>;
}

function tagsOf(file: Hdf5File, layer: string): BandTags {
  const { long_name, standard_name } = file.attributes(layer);
  const description = long_name ?? standard_name;
  return { ...(typeof description === 'string' && { description }), ...packingOf(file, layer) };
}

function itemsOf(attributes: Attributes): Record<string, string> {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, String(value)]));
}

/** Key of the metadata for the structural metadata of an HDF-EOS file, as text. */
const STRUCTURE_KEY = 'StructMetadata';
const FILE_ATTRIBUTES = '/HDFEOS/ADDITIONAL/FILE_ATTRIBUTES';
const INVENTORY_METADATA = /^\/HDFEOS INFORMATION\/(Core|Archive)Metadata\.\d+$/i;

/**
 * Lists every numeric dataset with two dimensions or more, and the metadata of the file: its global attributes, the items of
 * HDF-EOS inventories by their names, and its structural metadata under "StructMetadata". Throws TW_RASTER_UNREADABLE and
 * _CORRUPT.
 */
export function listHdf5Subdatasets(path: string): Promise<MultiDatasetFile> {
  return withHdf5(path, (file) => {
    const datasets = file.datasets();
    const metadata = {
      ...inventories(file, datasets),
      ...textOf(file.attributes(FILE_ATTRIBUTES)),
      ...textOf(file.attributes('/')),
    };
    const structure = readStructMetadata(file);
    if (structure !== undefined) metadata[STRUCTURE_KEY] = structure;
    return {
      path,
      kind: 'hdf5',
      subdatasets: datasets.flatMap((name) => subdatasetOf(file, name)),
      metadata,
    };
  });
}

function subdatasetOf(file: Hdf5File, name: string): Subdataset[] {
  const { type, shape } = file.metadata(file.dataset(name)!);
  const numeric = type === TypeClass.integer || type === TypeClass.float || type === TypeClass.enum;
  if (!numeric || !shape || shape.length < 2) return [];
  const { long_name: description = '' } = file.attributes(name);
  return [{ name, description: String(description), shape }];
}

function textOf(attributes: Attributes): Record<string, string> {
  const entries = Object.entries(attributes);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === 'string' ? value : value.join(', ')]),
  );
}

/** Items are ODL objects with a VALUE. */
function inventories(file: Hdf5File, datasets: string[]): Record<string, string> {
  const items: Record<string, string> = {};
  for (const path of datasets.filter((name) => INVENTORY_METADATA.test(name))) {
    for (const { name, values } of odlNodes(parseOdl(file.text(path) ?? ''))) {
      if (values.VALUE !== undefined) items[name] = values.VALUE.replace(/^\("?(.*?)"?\)$/, '$1');
    }
  }
  return items;
}
