/** Writes the planes of a tensor as a NumPy file or as a GeoTIFF. */
import { open, writeFile } from 'node:fs/promises';
import { type Bbox, type GridName, gridByName } from '../../grid/index.js';
import type { DataType, PixelArray } from '../../raster/index.js';
import type { TensorBandsTask } from '../derive-tasks.js';
import { type BandSubstitute, npyHead } from '../tensors/index.js';
import type { DerivePool } from './derive-pool.js';

export interface TensorFile {
  name: string;
  bytes: number;
  grid: GridName;
  geocode: string;
  dataType: DataType;
  /** Null: NaN. */
  nodata: number | null;
  /** Numbers of times, bands, rows and columns. */
  shape: [number, number, number, number];
  crs: string;
  /**
   * From column and row to x and y of the CRS: x = t0 * column + t1 * row + t2, y = t3 * column + t4 * row + t5, as in `proj:transform` of
   * STAC and `Affine` of rasterio.
   */
  transform: [number, number, number, number, number, number];
  /** Degrees. */
  bbox: Bbox;
  /** Bands of the second axis, as requested. */
  bands: string[];
  substitutes: BandSubstitute[];
  /** The steps of the first axis. */
  times: { datetime: string; collection: string; tile: string }[];
}

/** The properties of a tensor that are known before it is written. */
type TensorMetadata = Omit<TensorFile, 'name' | 'bytes'>;

/** Writes step by step, with at most one step per thread in memory. Returns the number of bytes. */
export async function writeNpy(
  workers: DerivePool,
  path: string,
  tasks: TensorBandsTask[],
  { dataType, shape }: TensorMetadata,
  signal: AbortSignal,
): Promise<number> {
  const file = await open(path, 'w');
  try {
    const head = npyHead(dataType, shape);
    await file.write(head);
    let bytes = head.length;
    for await (const planes of readInOrder(workers, tasks, signal)) {
      for (const plane of planes) {
        await file.write(new Uint8Array(plane.buffer, plane.byteOffset, plane.byteLength));
        bytes += plane.byteLength;
      }
    }
    return bytes;
  } finally {
    await file.close();
  }
}

export async function writeTiff(
  workers: DerivePool,
  path: string,
  tasks: TensorBandsTask[],
  { grid, geocode, dataType, nodata, shape, bands: names, times }: TensorMetadata,
  signal: AbortSignal,
): Promise<number> {
  const bands: PixelArray[] = [];
  for await (const planes of readInOrder(workers, tasks, signal)) bands.push(...planes);
  const cells = gridByName(grid);
  const { west, south, east, north } = cells.bounds(geocode);
  const [, , height, width] = shape;
  const image = {
    width,
    height,
    dataType,
    bands,
    transform: {
      originX: west,
      originY: north,
      pixelWidth: (east - west) / width,
      pixelHeight: (north - south) / height,
    },
    epsg: cells.epsg,
    nodata: nodata ?? NaN,
    bandTags: times.flatMap(({ collection, datetime }) =>
      names.map((name) => ({
        description: `${collection} ${datetime} ${withoutCollection(name, collection)}`,
      })),
    ),
    metadata: { GRID: grid, GEOCODE: geocode },
    overviews: 'nearest' as const,
  };
  const transfer = bands.map(({ buffer }) => buffer as ArrayBuffer);
  const bytes = await workers.run({ kind: 'stack', image }, { signal, transfer });
  await writeFile(path, bytes);
  return bytes.length;
}

const withoutCollection = (name: string, collection: string) =>
  name.startsWith(`${collection}/`) ? name.slice(collection.length + 1) : name;

/** Yields the planes of each task, in the order of the tasks. Runs at most one task per thread ahead of the caller. */
async function* readInOrder(
  workers: DerivePool,
  tasks: TensorBandsTask[],
  signal: AbortSignal,
): AsyncGenerator<PixelArray[]> {
  const running: Promise<PixelArray[]>[] = [];
  try {
    for (const task of tasks) {
      if (running.length === workers.threads) yield await running.shift()!;
      const next = workers.run({ kind: 'planes', ...task }, { signal });
      // The caller gets the error when the result is yielded.
      next.catch(() => undefined);
      running.push(next);
    }
    while (running.length > 0) yield await running.shift()!;
  } finally {
    await Promise.allSettled(running);
  }
}
