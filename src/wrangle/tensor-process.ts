/** Tensors as a job: bands of all tiles of a cell at one size, as one file a cell. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type GridName, gridByName, type PixelGrid, pixelGrids } from '../geocode/index.js';
import type { JobContext, Process } from '../jobs/index.js';
import {
  all,
  type Filter,
  type FilterParams,
  filterBody,
  parseFilter,
  rawUnlessAsked,
} from '../query/index.js';
import { bytesPerSample } from '../raster/index.js';
import { asStorageError, type Storage, type TileRecord } from '../storage/index.js';
import { filesOf, type WrangleContext } from './derive.js';
import { noBand, tensorTooLarge, tensorTypes } from './errors.js';
import { pickedTiles, tilesOfCell } from './picked-cells.js';
import { emptyOf } from './planes.js';
import type { BandPlace, PlanesTask } from './tasks.js';
import { type TensorFile, writeNpy, writeTiff } from './tensor-file.js';

export interface TensorInputs {
  filter?: FilterParams;
  /** Names or common names; `<collection>/<name>` takes it from that collection alone. */
  bands: string[];
  /** Metres of a pixel; without it, the pixel grid of the finest of the bands. */
  resolution?: number;
  format?: 'npy' | 'tif';
  /** Stored numbers in place of physical values. */
  stored?: boolean;
}

export interface TensorResults {
  files: TensorFile[];
  /** Cells without a file, by the reason. */
  skipped: Record<string, number>;
  seconds: number;
}

/** A GeoTIFF is made in memory; a NumPy file grows on the disk. */
const MOST_TIFF_BYTES = 512e6;
/** One tile's planes in a thread. */
const MOST_STEP_BYTES = 256e6;

export function tensorProcess(context: WrangleContext): Process {
  return {
    id: 'tensor',
    title: 'Make tensors',
    description: 'Stacks bands of all dates of a cell at one size, as a NumPy file or a GeoTIFF.',
    inputs: {
      type: 'object',
      required: ['bands'],
      additionalProperties: false,
      properties: {
        filter: { type: 'object', additionalProperties: false, properties: filterBody },
        bands: { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1, maxItems: 1000 },
        resolution: { type: 'number', minimum: 0.001 },
        format: { enum: ['npy', 'tif'] },
        stored: { type: 'boolean' },
      },
    },
    resumable: true,
    run: (inputs, job) => makeTensors(context, inputs as TensorInputs, job),
  };
}

async function makeTensors(
  context: WrangleContext,
  inputs: TensorInputs,
  job: JobContext,
): Promise<TensorResults> {
  const started = performance.now();
  const { storage } = context;
  const filter = observations(parseFilter(inputs.filter ?? {}));
  const folder = await storage.resultsFolder(job.id);
  const results: TensorResults = { files: [], skipped: {}, seconds: 0 };
  const cells = await cellsOf(storage, filter);
  const lacking = new Set<string>();
  const progress = () => {
    const done = results.files.length;
    const skipped = Object.values(results.skipped).reduce((sum, count) => sum + count, 0);
    job.progress({ total: cells.length, done, skipped });
  };
  for (const cell of cells) {
    job.signal.throwIfAborted();
    const tiles = await tilesOfCell(storage, cell, filter);
    const missing = inputs.bands.find((band) => tiles.every((tile) => !placeOfBand(tile, band)));
    if (missing === undefined)
      results.files.push(await makeTensor(context, cell, tiles, inputs, folder, job));
    else {
      lacking.add(missing);
      const reason = `no tile has the band ${missing}`;
      results.skipped[reason] = (results.skipped[reason] ?? 0) + 1;
    }
    progress();
  }
  if (cells.length > 0 && results.files.length === 0) throw noBand([...lacking]);
  results.seconds = (performance.now() - started) / 1000;
  return results;
}

/** Raw and coalesced tiles, unless the filter asks for sources: those filled or split hold the same pixels once more. */
function observations(filter: Filter): Filter {
  if (rawUnlessAsked(filter) === filter) return filter;
  return all([filter, { op: 'in', property: 'source', values: ['raw', 'coalesced'] }]);
}

interface Cell {
  grid: GridName;
  geocode: string;
}

async function cellsOf(storage: Storage, filter: Filter): Promise<Cell[]> {
  const cells = new Map<string, Cell>();
  for await (const tile of pickedTiles(storage, filter))
    cells.set(`${tile.grid} ${tile.geocode}`, { grid: tile.grid, geocode: tile.geocode });
  return [...cells.keys()].sort().map((key) => cells.get(key) as Cell);
}

/** By its own name, else by its common name; the finest of those. Null where a tile lacks it. */
function placeOfBand(tile: TileRecord, wanted: string): BandPlace | null {
  const [name, collection] = wanted.split('/', 2).reverse();
  if (collection !== undefined && collection !== tile.collection) return null;
  for (const key of ['name', 'commonName'] as const)
    for (const [group, { bands }] of tile.groups.entries()) {
      const band = bands.findIndex((one) => one[key] === name);
      if (band >= 0) return { group, band };
    }
  return null;
}

/** The files are written under their final names: the job's results name those that are whole. */
async function makeTensor(
  context: WrangleContext,
  cell: Cell,
  picked: TileRecord[],
  { bands, resolution, format = 'npy', stored = false }: TensorInputs,
  folder: string,
  job: JobContext,
): Promise<TensorFile> {
  const tiles = picked
    .filter((tile) => bands.some((band) => placeOfBand(tile, band)))
    .sort(
      (a, b) =>
        a.start - b.start ||
        (a.collection < b.collection ? -1 : a.collection > b.collection ? 1 : a.id < b.id ? -1 : 1),
    );
  const places = tiles.map((tile) => bands.map((band) => placeOfBand(tile, band)));
  const size = sizeOf(cell, tiles, places, resolution);
  const coding = stored ? storedType(cell, tiles, places) : null;
  const dataType = coding?.dataType ?? 'float32';
  const shape: TensorFile['shape'] = [tiles.length, bands.length, size.height, size.width];
  const step = bands.length * size.width * size.height * bytesPerSample(dataType);
  const most = format === 'tif' ? MOST_TIFF_BYTES / tiles.length : MOST_STEP_BYTES;
  if (step > most) throw tensorTooLarge(cell.geocode, shape, format);
  const name = `${gridByName(cell.grid).letter}${cell.geocode}.${format}`;
  const path = join(folder, name);
  const tasks = tiles.map(
    (tile, t): PlanesTask => ({
      kind: 'planes',
      tile: filesOf(context.storage, tile),
      bands: places[t],
      size,
      stored: coding,
    }),
  );
  const about = {
    ...cell,
    dataType,
    nodata: coding ? coding.empty : null,
    shape,
    bands,
    times: tiles.map(({ id, collection, start }) => ({
      datetime: new Date(start).toISOString(),
      collection,
      tile: id,
    })),
  };
  try {
    await context.storage.reserve.require(step * tiles.length);
    const bytes =
      format === 'npy'
        ? await writeNpy(context.workers, path, tasks, about, job.signal)
        : await writeTiff(context.workers, path, tasks, about, job.signal);
    if (format === 'npy') await writeFile(path.replace(/npy$/, 'json'), JSON.stringify(about, null, 2));
    return { name, bytes, ...about };
  } catch (error) {
    await rm(path, { force: true });
    throw asStorageError(error, path);
  }
}

/** The pixel grid of the cell at a pixel size, or that of the finest band. */
function sizeOf(
  { grid, geocode }: Cell,
  tiles: TileRecord[],
  places: (BandPlace | null)[][],
  resolution: number | undefined,
): PixelGrid {
  if (resolution !== undefined) {
    const [size] = pixelGrids(gridByName(grid), geocode, [{ x: resolution, y: resolution }]);
    return size;
  }
  const sizes = tiles.flatMap((tile, t) =>
    places[t].flatMap((place) => (place ? [tile.groups[place.group]] : [])),
  );
  const { width, height } = sizes.reduce((a, b) => (b.width * b.height > a.width * a.height ? b : a));
  return { width, height };
}

/** The type that all bands are stored in. Throws TW_WRANGLE_TYPES. */
function storedType(cell: Cell, tiles: TileRecord[], places: (BandPlace | null)[][]) {
  const groups = tiles.flatMap((tile, t) =>
    places[t].flatMap((place) => (place ? [tile.groups[place.group]] : [])),
  );
  const kinds = new Set(groups.map(({ dataType, nodata }) => `${dataType}, nodata ${nodata ?? 'none'}`));
  if (kinds.size > 1) throw tensorTypes(cell.geocode, [...kinds]);
  return { dataType: groups[0].dataType, empty: emptyOf(groups[0]) };
}
