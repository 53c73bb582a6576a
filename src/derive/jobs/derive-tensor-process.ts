/** Tensors as a job: one file per cell with the bands of all its tiles at one size. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cellBbox, computePixelGrids, type GridName, gridByName, type PixelGrid } from '../../grid/index.js';
import {
  addFetched,
  addSkipped,
  type JobContext,
  mergeSkipped,
  type Process,
  sumOf,
  type TileCounts,
} from '../../jobs/index.js';
import {
  and,
  checkFilter,
  defaultToRawSource,
  type Filter,
  type FilterParams,
  filterSchema,
  parseFilter,
} from '../../query/index.js';
import { bytesPerSample } from '../../raster/index.js';
import {
  asStorageError,
  type GroupRecord,
  type Storage,
  type TileRecord,
  withPinnedTiles,
} from '../../storage/index.js';
import { COUNT, listOf, objectOf, TEXT } from '../../utils/json-schema.js';
import type { TensorBand, TensorBandsTask } from '../derive-tasks.js';
import { bandNotFound, storedExpression, tensorTooLarge, tensorTypes } from '../errors.js';
import {
  type BandSubstitute,
  fillValueOf,
  isBand,
  parseBandRequests,
  resolveBandRequest,
} from '../tensors/index.js';
import { searchTilesOfCell, selectedTiles } from './derive-job-tiles.js';
import { type TileProcessContext, tileFiles } from './derive-tiles-job.js';
import { type TensorFile, writeNpy, writeTiff } from './write-tensor-job.js';

export interface TensorInputs {
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

const PART = objectOf(
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
    part: PART,
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
  const coding = stored ? storedType(cell, groups) : null;
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
    nodata: coding ? coding.empty : null,
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

/** The type that all bands are stored in. Throws TW_WRANGLE_TYPES. */
function storedType(cell: Cell, groups: GroupRecord[]) {
  const kinds = new Set(groups.map(({ dataType, nodata }) => `${dataType}, nodata ${nodata ?? 'none'}`));
  if (kinds.size > 1) throw tensorTypes(cell.geocode, [...kinds]);
  return { dataType: groups[0].dataType, empty: fillValueOf(groups[0]) };
}
