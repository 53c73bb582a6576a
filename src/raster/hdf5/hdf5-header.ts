/** Opens one dataset of an HDF5 file as a raster. */
import { stat } from 'node:fs/promises';
import { unsupported } from '../errors.js';
import { MAX_SIDE_PIXELS } from '../file-access/index.js';
import { bytesPerSample } from '../pixels/index.js';
import type { BandTags, Hdf5Blocks, RasterHeader } from '../raster-types.js';
import { cfGeoreferencing, missingData } from './cf/index.js';
import { eosGeoreferencing } from './hdf5-eos-georeferencing.js';
import { type Attributes, type Hdf5File, withHdf5 } from './hdf5-file.js';
import { readStoredDataset, type StoredDataset } from './hdf5-stored-dataset.js';

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
  if (shape.length < 2) throw unsupported(path, `${layer} has fewer than two dimensions`);
  const [height, width] = shape.slice(-2);
  const bands = shape.slice(0, -2).reduce((product, size) => product * size, 1);
  if (width > MAX_SIDE_PIXELS || height > MAX_SIDE_PIXELS || bands > MAX_BANDS) {
    throw unsupported(path, `the size of ${layer} is ${shape.join(' x ')}`);
  }
  const attributes = file.attributes(layer);
  const { nodata, missing, warnings } = missingData(file, layer, stored.types);
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
    bandTags: Array.from({ length: bands }, () => tagsOf(attributes)),
    metadata: itemsOf(attributes),
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
