/** Tensors as a job: one file per cell, NumPy or GeoTIFF, with the bands of all its tiles at one size. */

import { open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type Bbox,
  cellBbox,
  computePixelGrids,
  type GridName,
  gridByName,
  type PixelGrid,
} from '../grid/index.js';
import {
  addFetched,
  addSkipped,
  type JobContext,
  mergeSkipped,
  type Process,
  sumOf,
  type TileCounts,
} from '../jobs/index.js';
import {
  and,
  checkFilter,
  defaultToRawSource,
  type Filter,
  type FilterParams,
  filterSchema,
  parseFilter,
} from '../query/index.js';
import { bytesPerSample, type DataType, declaredNodata, type PixelArray } from '../raster/index.js';
import {
  asStorageError,
  type GroupRecord,
  type Storage,
  type TileRecord,
  withPinnedTiles,
} from '../storage/index.js';
import { COUNT, listOf, objectOf, TEXT } from '../utils/json-schema.js';
import { type BandSubstitute, fillValueOf, isBand, parseBandRequests, resolveBandRequest } from './bands.js';
import { bandNotFound, storedExpression, tensorGaps, tensorTooLarge, tensorTypes } from './errors.js';
import { type DerivePool, type TileProcessContext, tileFiles } from './job.js';
import { searchTilesOfCell, selectedTiles } from './selection.js';
import type { TensorBand, TensorBandsTask } from './tasks.js';

const NUMPY_TYPES: Record<DataType, string> = {
  uint8: '|u1',
  int8: '|i1',
  uint16: '<u2',
  int16: '<i2',
  uint32: '<u4',
  int32: '<i4',
  float32: '<f4',
  float64: '<f8',
};

/** The numbers begin at a multiple of this. */
const NPY_ALIGNMENT = 64;

/** The header of a NumPy file, version 1.0 of the format (NEP 1). The numbers follow it, last axis fastest. */
export function npyHead(dataType: DataType, shape: number[]): Buffer {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const text = `{'descr': '${NUMPY_TYPES[dataType]}', 'fortran_order': False, 'shape': (${sizes}), }`;
  const length = Math.ceil((10 + text.length + 1) / NPY_ALIGNMENT) * NPY_ALIGNMENT - 10;
  const head = Buffer.alloc(10, '\x93NUMPY\x01\x00', 'latin1');
  head.writeUInt16LE(length, 8);
  return Buffer.concat([head, Buffer.from(`${text.padEnd(length - 1)}\n`, 'latin1')]);
}

export interface TensorFile {
  name: string;
  bytes: number;
  grid: GridName;
  geocode: string;
  dataType: DataType;
  /** Null: NaN; in integers, every number is data. */
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
async function writeNpy(
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

async function writeTiff(
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
    nodata: nodata ?? (dataType.startsWith('float') ? NaN : undefined),
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

interface TensorInputs {
  filter?: FilterParams;
  /** Names or common names of bands, or expressions over them. The prefix `<collection>/` restricts one to that collection. */
  bands: string[];
  /** Pixel size in metres. Default: the pixel grid of the finest data band. */
  resolution?: number;
  format?: 'npy' | 'tif';
  /** Return stored numbers instead of physical values. */
  stored?: boolean;
}

/** `skipped` counts cells without a file. */
export interface TensorResults extends Pick<TileCounts, 'skipped' | 'bytesFetched'> {
  files: TensorFile[];
}

/** Results of a run over some of the cells. */
interface TensorPart extends TensorResults {
  /** Bands that some cell lacks. */
  lacking: string[];
}

const PART_SCHEMA = objectOf(
  {
    files: listOf(objectOf({ name: TEXT })),
    skipped: { type: 'object', additionalProperties: COUNT },
    lacking: listOf(TEXT),
  },
  { bytesFetched: COUNT },
);

/** A GeoTIFF is made in memory; a NumPy file is written step by step. */
const MAX_TIFF_BYTES = 512e6;
/** Planes of one tile, which a thread holds in memory. */
const MAX_STEP_BYTES = 256e6;

export function tensorProcess(context: TileProcessContext): Process {
  return {
    id: 'tensor',
    title: 'Make tensors',
    description:
      'Stacks bands and expressions of all dates of a cell at one size, as a NumPy file or a GeoTIFF.',
    inputs: {
      type: 'object',
      required: ['bands'],
      additionalProperties: false,
      properties: {
        filter: filterSchema,
        bands: { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1, maxItems: 1000 },
        resolution: { type: 'number', minimum: 0.001 },
        format: { enum: ['npy', 'tif'] },
        stored: { type: 'boolean' },
      },
    },
    resumable: true,
    merge: (parts) => mergeTensors(parts as TensorPart[]),
    part: PART_SCHEMA,
    conclude: (results) => {
      const { files, lacking } = results as TensorPart;
      if (files.length === 0 && lacking.length > 0) throw bandNotFound(lacking);
    },
    check: checkFilter,
    run: (inputs, job) => makeTensors(context, inputs as TensorInputs, job),
  };
}

function mergeTensors(parts: TensorPart[]): TensorPart {
  const merged: TensorPart = {
    files: parts.flatMap(({ files }) => files).sort((a, b) => (a.name < b.name ? -1 : 1)),
    skipped: mergeSkipped(parts),
    lacking: [...new Set(parts.flatMap(({ lacking }) => lacking))],
  };
  const fetched = sumOf(parts, ({ bytesFetched = 0 }) => bytesFetched);
  addFetched(merged, fetched);
  return merged;
}

async function makeTensors(
  context: TileProcessContext,
  inputs: TensorInputs,
  job: JobContext,
): Promise<TensorPart> {
  const { storage, finder } = context;
  const filter = observations(parseFilter(inputs.filter ?? {}));
  const folder = await storage.results.makeFolder(job.id);
  const results: TensorPart = { files: [], skipped: {}, lacking: [] };
  job.partial(() => results);
  const cells = await cellsOf(storage, filter, job.isMine);
  const lacking = new Set<string>();
  const progress = () => {
    const done = results.files.length;
    const skipped = Object.values(results.skipped).reduce((sum, count) => sum + count, 0);
    job.progress({ total: cells.length, done, skipped });
  };
  for (const cell of cells) {
    job.signal.throwIfAborted();
    const tiles = await searchTilesOfCell(finder, cell, filter);
    const steps = timeSteps(tiles, inputs.bands);
    const missing = inputs.bands.find((_, b) => steps.every(({ planes }) => !planes[b]));
    if (missing === undefined) {
      const read = steps.map((step) => ({ tile: step.tile, groups: groupsOf(step) }));
      await withPinnedTiles(storage, read, async (fetched) => {
        addFetched(results, fetched);
        results.files.push(await makeTensor(context, cell, steps, inputs, folder, job));
      });
    } else {
      lacking.add(missing);
      addSkipped(results, `no tile has the band ${missing}`);
    }
    progress();
  }
  results.lacking = [...lacking];
  return results;
}

/** Restricts a filter that names no source to raw and coalesced tiles: filled and split tiles repeat the same pixels. */
function observations(filter: Filter): Filter {
  if (defaultToRawSource(filter) === filter) return filter;
  return and([filter, { op: 'in', property: 'source', values: ['raw', 'coalesced'] }]);
}

interface Cell {
  grid: GridName;
  geocode: string;
}

async function cellsOf(storage: Storage, filter: Filter, isMine: JobContext['isMine']): Promise<Cell[]> {
  const cells = new Map<string, Cell>();
  for await (const tile of selectedTiles(storage, filter, isMine))
    cells.set(`${tile.grid} ${tile.geocode}`, { grid: tile.grid, geocode: tile.geocode });
  return [...cells.keys()].sort().map((key) => cells.get(key) as Cell);
}

/** A tile of a tensor, with a plane for each band. */
interface TimeStep {
  tile: TileRecord;
  planes: (TensorBand | null)[];
  substitutes: BandSubstitute[];
}

/** The files of a tile from which its planes are read. */
function groupsOf({ tile, planes }: TimeStep): GroupRecord[] {
  const read = new Set(planes.flatMap((plane) => plane?.places.map(({ group }) => group) ?? []));
  return tile.groups.filter(({ role }, i) => role === 'mask' || read.has(i));
}

/** The tiles that have any of the bands, by time. */
function timeSteps(tiles: TileRecord[], bands: string[]): TimeStep[] {
  const wanted = bands.map((band) => parseBandRequests(band, tiles));
  return tiles
    .map((tile) => {
      const found = wanted.map((one) => resolveBandRequest(tile, one));
      const planes = found.map((one) => one?.plane ?? null);
      return { tile, planes, substitutes: found.flatMap((one) => one?.substitutes ?? []) };
    })
    .filter(({ planes }) => planes.some((plane) => plane !== null))
    .sort(
      ({ tile: a }, { tile: b }) =>
        a.start - b.start ||
        (a.collection < b.collection ? -1 : a.collection > b.collection ? 1 : a.id < b.id ? -1 : 1),
    );
}

/** The position of the pixels of a cell. */
function geoReference({ grid, geocode }: Cell, { width, height }: PixelGrid) {
  const cells = gridByName(grid);
  const { west, south, east, north } = cells.bounds(geocode);
  const transform: TensorFile['transform'] = [
    (east - west) / width,
    0,
    west,
    0,
    (south - north) / height,
    north,
  ];
  return { crs: `EPSG:${cells.epsg}`, transform, bbox: cellBbox(cells, geocode) };
}

const distinct = (substitutes: BandSubstitute[]) => [
  ...new Map(substitutes.map((one) => [JSON.stringify(one), one])).values(),
];

/** Files are written under their final names; the job's results list only complete files. */
async function makeTensor(
  context: TileProcessContext,
  cell: Cell,
  steps: TimeStep[],
  { bands, resolution, format = 'npy', stored = false }: TensorInputs,
  folder: string,
  job: JobContext,
): Promise<TensorFile> {
  const expression = steps
    .flatMap(({ planes }) => planes)
    .findIndex((plane) => plane !== null && !isBand(plane));
  if (stored && expression >= 0) throw storedExpression(bands[expression % bands.length]);
  const groups = steps.flatMap(({ tile, planes }) =>
    planes.flatMap((plane) => plane?.places.map(({ group }) => tile.groups[group]) ?? []),
  );
  const size = sizeOf(cell, groups, resolution);
  const coding = stored ? storedType(cell, steps, bands) : null;
  const dataType = coding?.dataType ?? 'float32';
  const shape: TensorFile['shape'] = [steps.length, bands.length, size.height, size.width];
  const step = bands.length * size.width * size.height * bytesPerSample(dataType);
  const most = format === 'tif' ? MAX_TIFF_BYTES / steps.length : MAX_STEP_BYTES;
  if (step > most) throw tensorTooLarge(cell.geocode, shape, format);
  const name = `${gridByName(cell.grid).idPrefix}${cell.geocode}.${format}`;
  const path = join(folder, name);
  const tasks = steps.map(
    ({ tile, planes }): TensorBandsTask => ({
      tile: tileFiles(context.storage, tile),
      planes,
      size,
      stored: coding,
    }),
  );
  const about = {
    ...cell,
    dataType,
    nodata: coding ? coding.nodata : null,
    shape,
    ...geoReference(cell, size),
    bands,
    substitutes: distinct(steps.flatMap(({ substitutes }) => substitutes)),
    times: steps.map(({ tile: { id, collection, start } }) => ({
      datetime: new Date(start).toISOString(),
      collection,
      tile: id,
    })),
  };
  try {
    await context.storage.reserve.require(step * steps.length);
    const bytes =
      format === 'npy'
        ? await writeNpy(context.workers, path, tasks, about, job.signal)
        : await writeTiff(context.workers, path, tasks, about, job.signal);
    if (format === 'npy') await writeFile(path.replace(/npy$/, 'json'), JSON.stringify(about, null, 2));
    await job.file(name);
    if (format === 'npy') await job.file(name.replace(/npy$/, 'json'));
    return { name, bytes, ...about };
  } catch (error) {
    await rm(path, { force: true });
    throw asStorageError(error, path);
  }
}

/**
 * The pixel grid of the cell: at a pixel size in metres if it is given, otherwise the grid of the finest data band, or
 * of the finest band if the tile has only quality bands.
 */
function sizeOf({ grid, geocode }: Cell, groups: GroupRecord[], resolution: number | undefined): PixelGrid {
  if (resolution !== undefined) {
    const [size] = computePixelGrids(gridByName(grid), geocode, [{ x: resolution, y: resolution }]);
    return size;
  }
  const data = groups.filter(({ role }) => role === 'data');
  const sizes = data.length > 0 ? data : groups;
  const { width, height } = sizes.reduce((a, b) => (b.width * b.height > a.width * a.height ? b : a));
  return { width, height };
}

/** The encoding that all bands are stored in. Throws TW_WRANGLE_TYPES and TW_WRANGLE_STORED_GAPS. */
function storedType({ geocode }: Cell, steps: TimeStep[], names: string[]) {
  const bands = steps.flatMap(({ tile, planes }) =>
    planes.map((plane, b) => {
      const [place] = plane?.places ?? [];
      const group = place && tile.groups[place.group]!;
      return { name: names[b]!, group, share: group ? (group.bands[place.band]!.validPercent ?? 0) : 0 };
    }),
  );
  const groups = bands.flatMap(({ group }) => group ?? []);
  const kinds = new Set(groups.map(({ dataType, nodata }) => `${dataType}, nodata ${nodata ?? 'none'}`));
  if (kinds.size > 1) throw tensorTypes(geocode, [...kinds]);
  const { dataType, nodata } = groups[0]!;
  const declared = declaredNodata(dataType, nodata);
  const incomplete = bands.find(({ share }) => share < 100);
  if (declared === undefined && incomplete) throw tensorGaps(geocode, incomplete.name);
  return { dataType, nodata: declared ?? null, empty: fillValueOf({ dataType, nodata }) };
}
