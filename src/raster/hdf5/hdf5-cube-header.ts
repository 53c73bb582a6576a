/**
 * Opens cubes whose bands are interleaved by row or pixel (`Hdf5CubeBlocks`). The product format supplies their
 * georeferencing.
 */
import { stat } from 'node:fs/promises';
import { corrupt, unsupported } from '../errors.js';
import { MAX_BANDS, MAX_SIDE_PIXELS } from '../file-access/index.js';
import type { Affine, Crs, DataType, Hdf5CubeBlocks, MissingNumbers, RasterHeader } from '../raster-types.js';
import { missingData } from './cf/index.js';
import { type Hdf5File, withHdf5 } from './hdf5-file.js';
import { readStoredDataset, type StoredDataset } from './hdf5-stored-dataset.js';

/** Properties of a cube that each product stores in its own way. */
export interface CubeLayout
  extends Pick<Hdf5CubeBlocks, 'dataset' | 'bandAxis' | 'lookup' | 'errors' | 'fill'> {
  crs: Crs;
  /** Georeferencing for the given width and height of the raster. */
  transform: (width: number, height: number) => Affine;
  nodata: number | undefined;
  /** Set if values are read as another type than the stored one. */
  dataType?: DataType;
}

/** A raster that a lookup table makes has no natural blocks; windows end at rows of this many pixels. */
const LOOKUP_BLOCK_PIXELS = 64;

/**
 * The header of a cube. Throws TW_RASTER_UNREADABLE, _CORRUPT, _UNSUPPORTED, and _NO_LAYER if the cube or one of its related
 * datasets is missing.
 */
export async function openHdf5Cube(path: string, layout: CubeLayout): Promise<RasterHeader> {
  const header = await withHdf5(path, (file) => headerOf(file, layout));
  return { ...header, fileBytes: (await stat(path)).size };
}

function headerOf(file: Hdf5File, layout: CubeLayout): Omit<RasterHeader, 'fileBytes'> {
  const { path } = file;
  const { dataset, bandAxis, lookup, errors, fill } = layout;
  const stored = readStoredDataset(file, dataset);
  const { shape, dataType, chunks } = stored;
  if (!isCube(shape))
    throw unsupported(path, `${dataset} is ${shape.join(' x ')}, and no cube of three dimensions`);
  const bands = shape[bandAxis];
  const grid = { height: shape[0], width: shape[3 - bandAxis]! };
  const { height, width } = lookup ? lookupSize(file, lookup) : grid;
  if (width > MAX_SIDE_PIXELS || height > MAX_SIDE_PIXELS || bands > MAX_BANDS)
    throw unsupported(path, `${dataset} has ${bands} bands of ${width} x ${height} pixels`);
  if (errors) requireShape(file, errors.dataset, shape, dataset);
  const block = lookup
    ? { width, height: LOOKUP_BLOCK_PIXELS }
    : { width: chunks?.[3 - bandAxis] ?? width, height: chunks?.[0] ?? 1 };
  const missing = missingNumbers(file, dataset, stored);
  const blocks: Hdf5CubeBlocks = {
    reader: 'hdf5-cube',
    ...block,
    dataset,
    bandAxis,
    shape,
    ...(fill !== undefined && { fill }),
    ...(missing && { missing }),
    ...(lookup && { lookup }),
    ...(errors && { errors }),
  };
  return {
    path,
    width,
    height,
    bands,
    blocks,
    dataType: layout.dataType ?? dataType,
    crs: layout.crs,
    transform: layout.transform(width, height),
    nodata: layout.nodata,
    bandTags: Array.from({ length: bands }, () => ({})),
    metadata: {},
  };
}

/** Missing data by the attributes of a cube. The nodata value of the raster is another number. */
function missingNumbers(
  file: Hdf5File,
  dataset: string,
  { types }: StoredDataset,
): MissingNumbers | undefined {
  const { nodata = NaN, missing } = missingData(file, dataset, types);
  if (Number.isNaN(nodata)) return missing;
  const { fills, min, max } = missing ?? { fills: [], min: -Infinity, max: Infinity };
  return { fills: [nodata, ...fills], min, max };
}

function isCube(shape: number[]): shape is [number, number, number] {
  return shape.length === 3;
}

function lookupSize(file: Hdf5File, { columns, rows }: NonNullable<Hdf5CubeBlocks['lookup']>) {
  const { shape } = readStoredDataset(file, columns);
  if (shape.length !== 2)
    throw unsupported(file.path, `${columns} is ${shape.join(' x ')}, and no table of rows and columns`);
  requireShape(file, rows, shape, columns);
  const [height, width] = shape as [number, number];
  return { width, height };
}

function requireShape(file: Hdf5File, layer: string, expected: number[], other: string): void {
  const { shape } = readStoredDataset(file, layer);
  if (shape.join() !== expected.join())
    throw corrupt(file.path, `${layer} is ${shape.join(' x ')}, but ${other} is ${expected.join(' x ')}`);
}
