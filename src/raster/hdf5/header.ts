/** Opens one dataset of an HDF5 file as a raster. */
import { stat } from 'node:fs/promises';
import type { Dataset, Metadata } from 'h5wasm/node';
import { corrupt, noLayer, unsupported } from '../errors.js';
import { MAX_SIDE } from '../limits.js';
import { bytesPerSample } from '../pixels.js';
import type { BandTags, DataType, Hdf5Blocks, RasterHeader } from '../types.js';
import { cfPosition } from './cf-position.js';
import { eosPosition } from './eos-position.js';
import { type Attributes, type Hdf5File, TypeClass, withHdf5 } from './file.js';

/** A year of hours is 8,784 bands. */
const MAX_BANDS = 16_384;
/** The library holds a chunk in memory as a whole, and its memory ends at 2 GiB. */
const MAX_CHUNK_BYTES = 2 ** 28;
/** Datasets without chunks are read in blocks of about this size. */
const CONTIGUOUS_BLOCK_BYTES = 2 ** 20;

/** H5Z_FILTER_*: deflate, shuffle, fletcher32, szip, nbit, scaleoffset. */
const FILTERS = new Set([1, 2, 3, 4, 5, 6]);
const OTHER_FILTERS: Record<number, string> = {
  307: 'bzip2',
  32000: 'LZF',
  32001: 'Blosc',
  32004: 'LZ4',
  32008: 'bitshuffle',
  32013: 'ZFP',
  32015: 'Zstandard',
  32026: 'Blosc2',
};

/**
 * The header of a dataset. Its bands are all rows and columns that the dimensions before the last two count, the last of them
 * fastest. Throws TW_RASTER_UNREADABLE, _CORRUPT, _UNSUPPORTED, _NO_LAYER, _NO_CRS and _UNKNOWN_CRS.
 */
export async function openHdf5(path: string, layer: string): Promise<RasterHeader> {
  const header = await withHdf5(path, (file) => headerOf(file, layer));
  return { ...header, fileBytes: (await stat(path)).size };
}

function headerOf(file: Hdf5File, layer: string): Omit<RasterHeader, 'fileBytes'> {
  const { path } = file;
  const dataset = file.dataset(layer);
  if (!dataset) throw noLayer(path, layer, file.datasets());
  const stored = file.metadata(dataset);
  const shape = stored.shape ?? [];
  if (shape.length < 2) throw unsupported(path, `${layer} has fewer than two dimensions`);
  const [height, width] = shape.slice(-2);
  const bands = shape.slice(0, -2).reduce((product, size) => product * size, 1);
  if (!(width > 0 && height > 0 && bands > 0))
    throw corrupt(path, `the size of ${layer} is ${shape.join(' x ')}`);
  if (width > MAX_SIDE || height > MAX_SIDE || bands > MAX_BANDS) {
    throw unsupported(path, `the size of ${layer} is ${shape.join(' x ')}`);
  }
  if (stored.virtual_sources) throw unsupported(path, `${layer} is put together from other files`);
  requireFilters(file, dataset, layer);
  const dataType = dataTypeOf(path, layer, stored);
  const attributes = file.attributes(layer);
  const { crs, transform, upsideDown } = eosPosition(file, layer) ?? cfPosition(file, layer);
  return {
    path,
    width,
    height,
    bands,
    dataType,
    crs,
    transform,
    nodata: nodataOf(attributes),
    blocks: { reader: 'hdf5', ...blockSize(path, layer, stored, dataType), dataset: layer, upsideDown },
    bandTags: Array.from({ length: bands }, () => tagsOf(attributes)),
    metadata: itemsOf(attributes),
    dateTime: undefined,
    palette: false,
  };
}

function requireFilters(file: Hdf5File, dataset: Dataset, layer: string): void {
  const other = file.filters(dataset).find(({ id }) => !FILTERS.has(id));
  if (!other) return;
  const name = OTHER_FILTERS[other.id] ?? (other.name || `the unknown filter ${other.id}`);
  throw unsupported(file.path, `${layer} is compressed with ${name}`);
}

/** By class, bytes and sign. */
const DATA_TYPES: Record<string, DataType> = {
  'integer 1 unsigned': 'uint8',
  'integer 1 signed': 'int8',
  'integer 2 unsigned': 'uint16',
  'integer 2 signed': 'int16',
  'integer 4 unsigned': 'uint32',
  'integer 4 signed': 'int32',
  'float 4': 'float32',
  'float 8': 'float64',
};

function dataTypeOf(path: string, layer: string, { type, size, signed }: Metadata): DataType {
  // Enumerations are stored as their integers.
  const isInteger = type === TypeClass.integer || type === TypeClass.enum;
  const sign = signed ? 'signed' : 'unsigned';
  const name = isInteger ? `integer ${size} ${sign}` : type === TypeClass.float ? `float ${size}` : 'other';
  const dataType = DATA_TYPES[name];
  if (dataType) return dataType;
  const found = name === 'other' ? 'no numbers' : `numbers of ${size} bytes`;
  throw unsupported(path, `the pixels of ${layer} are ${found}`);
}

function blockSize(path: string, layer: string, { chunks, shape }: Metadata, dataType: DataType) {
  const [height, width] = shape!.slice(-2);
  const bytes = bytesPerSample(dataType);
  if (!chunks) {
    const rows = Math.floor(CONTIGUOUS_BLOCK_BYTES / (width * bytes));
    return { width, height: Math.min(height, Math.max(1, rows)) };
  }
  const chunkBytes = chunks.reduce((product, size) => product * size, bytes);
  if (!(chunkBytes > 0)) throw corrupt(path, `the chunks of ${layer} are ${chunks.join(' x ')}`);
  if (chunkBytes > MAX_CHUNK_BYTES) {
    throw unsupported(path, `a chunk of ${layer} is ${chunks.join(' x ')} pixels, more than 256 MiB`);
  }
  const [rows, columns] = chunks.slice(-2);
  return { width: Math.min(width, columns), height: Math.min(height, rows) } satisfies Partial<Hdf5Blocks>;
}

/** The first of several fill values; some products write them as text. */
function nodataOf({ _FillValue: fill, missing_value: missing }: Attributes): number | undefined {
  const [first] = [fill ?? missing ?? []].flat();
  if (first === undefined || (typeof first === 'string' && first.trim() === '')) return undefined;
  const value = Number(first);
  return Number.isNaN(value) && typeof first === 'string' ? undefined : value;
}

/** CF-1.11, section 8.1: physical value = stored * scale_factor + add_offset. */
function tagsOf(attributes: Attributes): BandTags {
  const number = (name: string) => {
    const [value] = [attributes[name] ?? []].flat();
    const parsed = value === undefined || value === '' ? NaN : Number(value);
    return Number.isFinite(parsed) ? parsed : undefined;
  };
  const description = attributes.long_name ?? attributes.standard_name;
  const scale = number('scale_factor');
  const offset = number('add_offset');
  return {
    ...(typeof description === 'string' && { description }),
    ...(scale !== undefined && { scale }),
    ...(offset !== undefined && { offset }),
  };
}

function itemsOf(attributes: Attributes): Record<string, string> {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, String(value)]));
}
