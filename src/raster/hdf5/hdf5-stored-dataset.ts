/** Type and layout of a dataset in an HDF5 file, and checks that it can be read. */
import type { Dataset, Metadata } from 'h5wasm/node';
import { corrupt, subdatasetNotFound, unsupported } from '../errors.js';
import { bytesPerSample, DATA_TYPES } from '../pixels/index.js';
import type { DataType, PixelArray } from '../raster-types.js';
import { decodedType, type NumberTypes, viewAsDecoded } from './cf/index.js';
import { type Hdf5File, TypeClass } from './hdf5-file.js';

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

/** A numeric dataset. Throws TW_RASTER_NO_LAYER, _CORRUPT and _UNSUPPORTED. */
export function readStoredDataset(file: Hdf5File, layer: string): StoredDataset {
  const { path } = file;
  const dataset = file.dataset(layer);
  if (!dataset) throw subdatasetNotFound(path, layer, file.datasets());
  const stored = file.metadata(dataset);
  const shape = stored.shape ?? [];
  if (!shape.every((size) => size > 0)) throw corrupt(path, `the size of ${layer} is ${shape.join(' x ')}`);
  if (stored.virtual_sources) throw unsupported(path, `${layer} is put together from other files`);
  requireFilters(file, dataset, layer);
  const storedType = dataTypeOf(path, layer, stored);
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
  throw unsupported(file.path, `${layer} is compressed with ${name}`);
}

function dataTypeOf(path: string, layer: string, { type, size, signed }: Metadata): DataType {
  // Enumerations are stored as their integers.
  const isInteger = type === TypeClass.integer || type === TypeClass.enum;
  const kind = isInteger ? (signed ? 'int' : 'uint') : type === TypeClass.float ? 'float' : 'other';
  const dataType = DATA_TYPES.find((known) => known === `${kind}${8 * size}`);
  if (dataType) return dataType;
  const found = kind === 'other' ? 'no numbers' : `numbers of ${size} bytes`;
  throw unsupported(path, `the pixels of ${layer} are ${found}`);
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
