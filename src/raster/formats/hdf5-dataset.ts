/**
 * Type and layout of a dataset in an HDF5 file, and checks that it can be read. Missing data, and signed integers that represent unsigned
 * ones, are detected by CF-1.11, sections 2.2, 2.5.1 and 8.1, and by the attribute conventions of the NetCDF Users Guide (appendix A), to
 * which CF refers.
 */

import type { Dataset, Metadata } from 'h5wasm/node';
import { corrupt, subdatasetNotFound, unsupported } from '../errors.js';
import {
  allocatePixels,
  bytesPerSample,
  DATA_TYPES,
  dataTypeOf,
  isFloat,
  minValue,
  nodataAsType,
  parseNumber,
  viewPixels,
} from '../pixels/data-types.js';
import type { DataType, MissingNumbers, PixelArray } from '../raster.js';
import { type Attributes, type AttributeValue, type Hdf5File, TypeClass } from './hdf5-file.js';

/** The stored type of a dataset's numbers, and the type that they represent. */
interface NumberTypes {
  stored: DataType;
  decoded: DataType;
}

interface MissingData {
  /** A value that no valid pixel has. */
  nodata: number | undefined;
  /** Undefined if only the nodata value is missing data. */
  missing: MissingNumbers | undefined;
  /** Unused attributes, for the user. */
  warnings: string[];
}

/**
 * The type that stored numbers represent: `_Unsigned` changes the sign of integers, and bytes whose valid range ends above 127
 * are unsigned.
 */
function decodedType(stored: DataType, attributes: Attributes): DataType {
  const other = (stored.startsWith('u') ? stored.slice(1) : `u${stored}`) as DataType;
  const unsigned = String(attributes._Unsigned ?? '').toLowerCase();
  if (!isFloat(stored) && (unsigned === 'true' || unsigned === 'false'))
    return (unsigned === 'true') === stored.startsWith('u') ? stored : other;
  const highest = numbersIn(attributes.valid_range)[1] ?? numbersIn(attributes.valid_max)[0] ?? 0;
  return stored === 'int8' && highest > 127 ? 'uint8' : stored;
}

/** Stored integers as the type that they represent: a view of the same bytes. */
function viewAsDecoded(values: PixelArray, meant: DataType): PixelArray {
  if (dataTypeOf(values) === meant) return values;
  return viewPixels(meant, values.buffer, values.byteOffset, values.length);
}

/**
 * Default fill values of the netCDF library (NC_FILL_SHORT and so on, netcdf.h). The library stores them in unwritten parts of
 * a variable without `_FillValue`. Bytes have no default, because all their values may be data.
 */
const DEFAULT_FILL_VALUES: Partial<Record<DataType, number>> = {
  int16: -32767,
  uint16: 65535,
  int32: -2147483647,
  uint32: 4294967295,
  float32: Math.fround(9.969209968386869e36),
  float64: 9.969209968386869e36,
};

/**
 * Reads `_FillValue`, `missing_value`, `valid_min`, `valid_max` and `valid_range` of a dataset. A netCDF variable without
 * `_FillValue` has that of the library.
 */
export function missingData(file: Hdf5File, layer: string, types: NumberTypes): MissingData {
  const { decoded } = types;
  const attributes = file.attributes(layer);
  const warnings: string[] = [];
  const { min, max } = validRange(file, layer, types, warnings);
  const inPixels = (value: number) => nodataAsType(decoded, toDecodedType(value, types)) ?? [];
  const declared = [attributes._FillValue, attributes.missing_value].flatMap(numbersIn).flatMap(inPixels);
  const hasDefault = attributes._FillValue === undefined && file.isNetcdf;
  const unwritten = hasDefault ? [DEFAULT_FILL_VALUES[types.stored] ?? []].flat().flatMap(inPixels) : [];
  const nodata = declared[0] ?? valueOutsideRange(decoded, min, max) ?? unwritten[0];
  const fills = [...new Set([...declared, ...unwritten])].filter(
    (value) => value !== nodata && !Number.isNaN(value),
  );
  const isPlain = fills.length === 0 && min === -Infinity && max === Infinity;
  return { nodata, missing: isPlain ? undefined : { fills, min, max }, warnings };
}

export function isMissing(value: number, { fills, min, max }: MissingNumbers): boolean {
  return value < min || value > max || (fills.length > 0 && fills.includes(value));
}

/** Sets missing pixels to the nodata value, in place. */
export function replaceMissing(pixels: PixelArray, missing: MissingNumbers, nodata: number): void {
  for (let i = 0; i < pixels.length; i++) if (isMissing(pixels[i], missing)) pixels[i] = nodata;
}

/** The numbers of an attribute; some products write them as text. */
export function numbersIn(attribute: AttributeValue | undefined): number[] {
  if (typeof attribute !== 'string') return attribute ?? [];
  const words = attribute.split(/[\s,]+/).filter((word) => word !== '');
  const numbers = words.map(Number);
  return numbers.some(Number.isNaN) ? [] : numbers;
}

/** Converts numbers of attributes if the integers represent the other sign: -1 of an unsigned byte is 255. */
function toDecodedType(value: number, { stored, decoded }: NumberTypes): number {
  const count = 2 ** (8 * bytesPerSample(decoded));
  if (stored === decoded || value < -count / 2 || value >= count) return value;
  const pixel = allocatePixels(decoded, 1);
  pixel[0] = value;
  return pixel[0];
}

/** NaN for floating point numbers; for integers the end of their type that is not valid, undefined if both are valid. */
function valueOutsideRange(dataType: DataType, min: number, max: number): number | undefined {
  if (min === -Infinity && max === Infinity) return undefined;
  if (isFloat(dataType)) return NaN;
  const lowest = minValue(dataType);
  const highest = lowest + 2 ** (8 * bytesPerSample(dataType)) - 1;
  if (min > lowest) return lowest;
  return max < highest ? highest : undefined;
}

// --- valid range --------------------------------------------------------------------------------------------------

interface ValidRange {
  min: number;
  max: number;
}

const BOUNDS = ['valid_range', 'valid_min', 'valid_max'] as const;
/** Tolerance of a bound of unpacked numbers around a stored integer, as a fraction of a count. */
const BOUND_TOLERANCE = 1e-3;

/** Bounds in stored numbers. As in netCDF4-python, `valid_range` replaces `valid_min` and `valid_max`. */
function validRange(file: Hdf5File, layer: string, types: NumberTypes, warnings: string[]): ValidRange {
  const attributes = file.attributes(layer);
  const range = numbersIn(attributes.valid_range);
  if (attributes.valid_range !== undefined && range.length !== 2)
    warnings.push(`valid_range of ${layer} is not used: it is not two numbers`);
  const [low, high] = range.length === 2 ? range : [];
  const bounds = [
    low ?? numbersIn(attributes.valid_min)[0] ?? -Infinity,
    high ?? numbersIn(attributes.valid_max)[0] ?? Infinity,
  ] as const;
  const { min, max } = isUnpacked(file, layer, types)
    ? packedRange(bounds, attributes, types.decoded)
    : packedBounds(bounds, types);
  if (min <= max) return { min, max };
  warnings.push(`the valid range of ${layer} is not used: it is from ${bounds.join(' to ')}`);
  return { min: -Infinity, max: Infinity };
}

function packedBounds(bounds: readonly number[], types: NumberTypes): ValidRange {
  const round = types.decoded === 'float32' ? Math.fround : (value: number) => value;
  const [min, max] = bounds.map((bound) => round(toDecodedType(bound, types)));
  return { min, max };
}

/** The stored numbers whose unpacked values, stored * scale_factor + add_offset, lie within the bounds. */
function packedRange(bounds: readonly number[], attributes: Attributes, meant: DataType): ValidRange {
  const [scale = 1] = numbersIn(attributes.scale_factor);
  const [offset = 0] = numbersIn(attributes.add_offset);
  const ends = bounds.map((bound) => (bound - offset) / scale);
  const [min, max] = scale < 0 ? ends.toReversed() : ends;
  return isFloat(meant)
    ? { min, max }
    : { min: Math.ceil(min - BOUND_TOLERANCE), max: Math.floor(max + BOUND_TOLERANCE) };
}

/**
 * Bounds are packed numbers, unless they have the type of `scale_factor` and `add_offset` and this type is wider than that of
 * the packed numbers (NetCDF Users Guide, appendix A, `valid_range`).
 */
function isUnpacked(file: Hdf5File, layer: string, { decoded }: NumberTypes): boolean {
  const bytes = (name: string) => file.floatBytes(layer, name);
  const unpacked = Math.max(bytes('scale_factor'), bytes('add_offset'));
  const { length } = BOUNDS.filter((name) => bytes(name) > 0);
  const packed = isFloat(decoded) ? bytesPerSample(decoded) : 0;
  return length > 0 && unpacked > packed && BOUNDS.every((name) => [0, unpacked].includes(bytes(name)));
}

/** Scale and offset of packed numbers (CF-1.11, section 8.1). Throws TW_RASTER_CORRUPT if one is stated and is not a number. */
export function packingOf(file: Hdf5File, layer: string): { scale?: number; offset?: number } {
  const attributes = file.attributes(layer);
  const stated = (name: string) => {
    if (!file.hasAttribute(layer, name)) return undefined;
    const value = attributes[name];
    const [number = NaN, ...more] = typeof value === 'string' ? [parseNumber(value)] : (value ?? []);
    if (Number.isFinite(number) && more.length === 0) return number;
    throw corrupt(
      file.path,
      `${name} of ${layer} is ${JSON.stringify(value) ?? 'not stored as a number'}`,
      REPAIR_PACKING,
    );
  };
  const scale = stated('scale_factor');
  const offset = stated('add_offset');
  return { ...(scale !== undefined && { scale }), ...(offset !== undefined && { offset }) };
}

const REPAIR_PACKING =
  'Correct the attribute, for example with ncatted -a scale_factor,VARIABLE,o,d,0.01 FILE.nc (Debian package nco).';

/**
 * Returns a reader of a hyperslab of coordinates: packed ones are unpacked, and missing ones are NaN. 64-bit integers lose digits beyond
 * 2^53. Throws TW_RASTER_CORRUPT and _UNSUPPORTED.
 */
export function coordinateReader(
  file: Hdf5File,
  path: string,
): (ranges: [from: number, to: number][]) => Float64Array {
  const dataset = file.dataset(path)!;
  requireFilters(file, dataset, path);
  const stored = file.metadata(dataset);
  const { scale = 1, offset = 0 } = packingOf(file, path);
  const isLong = stored.type === TypeClass.integer && stored.size === 8;
  const storedType = isLong ? 'float64' : storedDataType(file.path, path, stored);
  const decoded = decodedType(storedType, file.attributes(path));
  const { nodata, missing } = missingData(file, path, { stored: storedType, decoded });
  return (ranges) => {
    const values = file.slice(dataset, ranges);
    const numbers = isLong
      ? Float64Array.from(values as ArrayLike<bigint>, longNumber)
      : viewAsDecoded(values as PixelArray, decoded);
    return Float64Array.from(numbers, (value) =>
      value === nodata || (missing && isMissing(value, missing)) ? NaN : value * scale + offset,
    );
  };
}

/** The ends of the range are what libraries store for missing times. */
function longNumber(value: bigint): number {
  const number = Number(value);
  return Math.abs(number) >= 2 ** 63 ? NaN : number;
}

export interface StoredDataset {
  dataset: Dataset;
  shape: number[];
  /** The type that the numbers represent. */
  dataType: DataType;
  types: NumberTypes;
  /** Undefined for a contiguous dataset. */
  chunks: number[] | undefined;
}

/** The library holds a complete chunk in memory, which ends at 2 GiB. */
const MAX_CHUNK_BYTES = 2 ** 28;
/** H5Z_FILTER_*: deflate, shuffle, fletcher32, szip, nbit, scaleoffset. */
const SUPPORTED_FILTERS = new Set([1, 2, 3, 4, 5, 6]);
const UNSUPPORTED_FILTERS: Record<number, string> = {
  307: 'bzip2',
  32000: 'LZF',
  32001: 'Blosc',
  32004: 'LZ4',
  32008: 'bitshuffle',
  32013: 'ZFP',
  32015: 'Zstandard',
  32026: 'Blosc2',
};

const REPACK =
  'Write it with deflate: pip install hdf5plugin, then HDF5_PLUGIN_PATH=$(python3 -c "import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)") h5repack -f GZIP=1 IN OUT (Debian package hdf5-tools).';
const TO_DOUBLE = "Convert it with ncap2 -s 'VARIABLE=double(VARIABLE)' IN.nc OUT.nc (Debian package nco).";
/** For datasets that only GDAL reads, without their position. */
export const TO_GEOTIFF =
  'Write it with its position: gdal_translate -a_srs EPSG:CODE -a_ullr WEST NORTH EAST SOUTH HDF5:"FILE"://PATH OUT.tif.';

/** A numeric dataset. Throws TW_RASTER_NO_LAYER, _CORRUPT and _UNSUPPORTED. */
export function readStoredDataset(file: Hdf5File, layer: string): StoredDataset {
  const { path } = file;
  const dataset = file.dataset(layer);
  if (!dataset) throw subdatasetNotFound(path, layer, file.datasets());
  const stored = file.metadata(dataset);
  const shape = stored.shape ?? [];
  if (!shape.every((size) => size > 0)) throw corrupt(path, `the size of ${layer} is ${shape.join(' x ')}`);
  if (stored.virtual_sources)
    throw unsupported(path, `${layer} is put together from other files`, TO_GEOTIFF);
  requireFilters(file, dataset, layer);
  const storedType = storedDataType(path, layer, stored);
  const dataType = decodedType(storedType, file.attributes(layer));
  const types = { stored: storedType, decoded: dataType };
  return { dataset, shape, dataType, types, chunks: chunksOf(path, layer, stored, dataType) };
}

/** Numbers of a hyperslab, [from, to) along each dimension, as the type that they represent. */
export function readHyperslab(
  file: Hdf5File,
  dataset: Dataset,
  dataType: DataType,
  ranges: [from: number, to: number][],
): PixelArray {
  return viewAsDecoded(file.slice(dataset, ranges) as PixelArray, dataType);
}

function requireFilters(file: Hdf5File, dataset: Dataset, layer: string): void {
  const other = file.filters(dataset).find(({ id }) => !SUPPORTED_FILTERS.has(id));
  if (!other) return;
  const name = UNSUPPORTED_FILTERS[other.id] ?? (other.name || `the unknown filter ${other.id}`);
  const advice =
    name === 'LZF'
      ? 'Write it again with h5py and compression="gzip"; other programs do not read LZF.'
      : REPACK;
  throw unsupported(file.path, `${layer} is compressed with ${name}`, advice);
}

function storedDataType(path: string, layer: string, { type, size, signed }: Metadata): DataType {
  // Enumerations are stored as their integers.
  const isInteger = type === TypeClass.integer || type === TypeClass.enum;
  const kind = isInteger ? (signed ? 'int' : 'uint') : type === TypeClass.float ? 'float' : 'other';
  const dataType = DATA_TYPES.find((known) => known === `${kind}${8 * size}`);
  if (dataType) return dataType;
  const found = kind === 'other' ? 'no numbers' : `numbers of ${size} bytes`;
  const advice = kind === 'other' ? 'Name another layer.' : kind === 'float' ? TO_GEOTIFF : TO_DOUBLE;
  throw unsupported(path, `the pixels of ${layer} are ${found}`, advice);
}

function chunksOf(path: string, layer: string, { chunks }: Metadata, dataType: DataType) {
  if (!chunks) return undefined;
  const bytes = chunks.reduce((product, size) => product * size, bytesPerSample(dataType));
  if (!(bytes > 0)) throw corrupt(path, `the chunks of ${layer} are ${chunks.join(' x ')}`);
  if (bytes > MAX_CHUNK_BYTES) {
    throw unsupported(path, `a chunk of ${layer} is ${chunks.join(' x ')} pixels, more than 256 MiB`);
  }
  return chunks;
}
