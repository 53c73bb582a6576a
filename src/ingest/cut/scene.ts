/** Cuts the cells of a scene into staged tiles: pass by pass, chunk by chunk. */
import { join } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import type { Grid, PixelGrid } from '../../grid/index.js';
import { type ImageFile, Mask, nodataAsType, type RasterHeader, spectralTags } from '../../raster/index.js';
import { asStorageError, type GroupRecord, type SceneWrite, type TileRecord } from '../../storage/index.js';
import { type CloudDetector, type LightPart, layOutCells } from '../cloud/detect.js';
import { type CutPass, groupPixelGrids, isCubeGroup, planCutPasses, type ScenePlan } from '../plan.js';
import {
  type IngestHooks,
  type IngestOptions,
  referenceGroup,
  type Scene,
  type SourceGroup,
} from '../scene.js';
import { bandBytes, planChunks, windowBytes, windowHeights } from './chunks.js';
import { cubeMemoryBounds } from './cube.js';
import { type Allocation, RowBuffer, type SharedMemory } from './memory.js';
import type { NegativeCount } from './negative-reflectances.js';
import type { IngestPool } from './pool.js';
import {
  type CellGroup,
  type CubeTask,
  type CutResult,
  type DetectCloudTask,
  decodeTasks,
  type EmptyFileTask,
  type SourceRows,
  validityBands,
  type WarpTask,
} from './tasks.js';
import { emptyValidity } from './validity.js';

/** State of a cell while its files are cut. */
interface CellState {
  geocode: string;
  /** Pixels of each group of the scene. */
  sizes: PixelGrid[];
  /** By the pass; null if the cell holds no data of the file. */
  files: (WrittenFile | null)[];
  /** Folder of its staged files. */
  folder: string | undefined;
}

/** The result of a pass whose file is written. */
interface WrittenFile extends Pick<CutResult, 'validity' | 'mask'> {
  groups: GroupRecord[];
}

/** Shared by all scenes that are being cut. */
export interface CutResources {
  pool: IngestPool;
  /** Holds their source rows. */
  memory: SharedMemory;
}

/** Options that affect the tiles, in addition to the scene itself. */
export interface CutSettings {
  test: CloudDetector | null;
  /** Only for cubes; other groups are always compressed. */
  compress?: IngestOptions['compress'];
}

/** The tiles of a cut, published but not committed, and the count of their pixels below zero. */
export interface CutTiles {
  tiles: TileRecord[];
  negative: NegativeCount;
}

/** Everything that cutting one scene needs. */
interface CutContext extends CutResources {
  scene: Scene;
  grid: Grid;
  write: SceneWrite;
  passes: CutPass[];
  compress: IngestOptions['compress'];
  signal: AbortSignal | undefined;
  /** Concurrent cells: one in each thread, one waiting for it, and two whose files are being written. */
  concurrency: number;
  /** Sum over the cells. */
  negative: NegativeCount;
  /** Counts finished cells of a pass. */
  step(): void;
}

/** Cuts the tiles of the scene. Cells without a valid pixel in any data band have no tile. */
export async function cutScene(
  { pool, memory }: CutResources,
  plan: ScenePlan,
  geocodes: string[],
  write: SceneWrite,
  { test, compress }: CutSettings,
  hooks: IngestHooks,
): Promise<CutTiles> {
  const { scene, grid } = plan;
  const cells = new Map<string, CellState>();
  for (const geocode of geocodes) {
    cells.set(geocode, { geocode, sizes: groupPixelGrids(plan, geocode), files: [], folder: undefined });
  }
  let steps = 0;
  const passes = planCutPasses(scene, test === null);
  const step = () => hooks.onProgress?.(++steps / (geocodes.length * (passes.length + (test ? 1 : 0))));
  const { signal } = hooks;
  const concurrency = 4 * pool.threads;
  const negative = { clear: 0, negative: 0 };
  const work: CutContext = {
    ...{ pool, memory, scene, grid, write, passes, compress, signal, concurrency, negative, step },
  };
  for (const [p, pass] of passes.entries())
    await (pass.hasCube ? cutCubes(work, p, pass, cells) : cutPass(work, p, pass, cells));

  // The last pass makes the mask of every tile that holds data.
  const cellsWithData = [...cells.values()].filter(({ files }) => files.at(-1));
  hooks.onTiles?.(cellsWithData.length);
  await writeEmptyFiles(work, cellsWithData);
  if (test) {
    steps += cells.size - cellsWithData.length;
    await detectCloudInCells(work, cellsWithData, test);
  }
  await write.publish(cellsWithData.map(({ geocode }) => geocode));
  signal?.throwIfAborted();
  return { tiles: cellsWithData.map((cell) => tileRecord(work, cell)), negative };
}

/** Cuts the file of one pass out of all cells. */
async function cutPass(
  work: CutContext,
  p: number,
  pass: CutPass,
  cells: Map<string, CellState>,
): Promise<void> {
  const { pool, memory, scene, grid, signal, concurrency } = work;
  const { sources } = pass;
  const chunks = planChunks(scene.path, sources, grid, [...cells.keys()], memory.size);
  const heights = windowHeights(sources, chunks);
  const bytes = sources.reduce((sum, source, i) => sum + windowBytes(source, heights[i]), 0);
  const allocation = await memory.allocate(bytes, scene.path, signal);
  try {
    const windows = allocateWindows(sources, heights, allocation);
    for (const chunk of chunks) {
      const reads = windows.flatMap(({ files }, i) =>
        files.flatMap((file) => file.advance(chunk.windows[i], concurrency)),
      );
      const decoding = decodeTasks(reads, pool.gdalProcesses);
      await mapConcurrent(decoding, concurrency, (task) => pool.decode(task, signal));
      await mapConcurrent(chunk.geocodes, concurrency, async (geocode) => {
        const cell = cells.get(geocode) as CellState;
        const read = windows.map(({ source }, i): SourceRows => {
          const [rowStart, rowEnd] = chunk.windows[i];
          return { ...source, rowStart, rowEnd };
        });
        const task: WarpTask = {
          ...{ kind: 'cut', sources: read },
          cells: pass.groups.map((g) => cellGroup(work, g, cell)),
          mask: maskTask(work, pass, cell),
        };
        const result = await pool.run(task, signal);
        cell.files[p] = result && (await writeFile(work, cell, result));
        work.negative.clear += result?.negative?.clear ?? 0;
        work.negative.negative += result?.negative?.negative ?? 0;
        work.step();
      });
    }
  } finally {
    allocation.release();
  }
}

/** The mask of a file that is cut last. */
function maskTask(
  { passes, scene }: CutContext,
  { mask }: CutPass,
  { files, sizes }: CellState,
): WarpTask['mask'] {
  if (!mask) return null;
  const emptyGroups = (groups: number[]) =>
    groups.flatMap((g) => (scene.groups[g]!.role === 'data' ? [emptyValidity(sizes[g]!)] : []));
  const others = passes.slice(0, -1).flatMap(({ groups }, p) => files[p]?.validity ?? emptyGroups(groups));
  return { ...mask, others };
}

/** Cuts a file with cubes out of all cells. Each cell is one task, which reads its source and writes its file. */
async function cutCubes(
  work: CutContext,
  p: number,
  pass: CutPass,
  cells: Map<string, CellState>,
): Promise<void> {
  const { pool, memory, scene, signal } = work;
  const share = Math.floor(memory.size / (pool.threads + 1));
  const sources = pass.sources.map(({ nodata, bands }) => ({
    nodata,
    bands: bands.map(({ header, index, detector }) => ({ header, index, detector })),
  }));
  await mapConcurrent([...cells.values()], pool.threads + 1, async (cell) => {
    const groups = pass.groups.map((g) => cellGroup(work, g, cell));
    const bounds = groups.flatMap((group, i) =>
      isCubeGroup(pass.sources[i]!) ? [cubeMemoryBounds(group, sources[i]!.bands[0]!.header)] : [],
    );
    const least = Math.max(...bounds.map((bound) => bound.least));
    const most = Math.max(...bounds.map((bound) => bound.most));
    const bytes = Math.max(least, Math.min(most, share));
    const allocation = await memory.allocate(bytes, scene.path, signal);
    try {
      const path = await stagedPath(work, cell, groups[0]!.name);
      const { buffer, offset } = allocation;
      const mask = maskTask(work, pass, cell);
      const task: CubeTask = { kind: 'cube', cells: groups, sources, path, buffer, offset, bytes, mask };
      const result = await pool.run(task, signal).catch((error) => {
        throw asStorageError(error, path);
      });
      cell.files[p] = result && (await writeFile(work, cell, result));
      work.step();
    } finally {
      allocation.release();
    }
  });
}

/** The windows of one source: one for each raster, and the source in memory, with any rows. */
interface SourceWindow {
  files: RowBuffer[];
  source: Omit<SourceRows, 'rowStart' | 'rowEnd'>;
}

function allocateWindows(
  sources: SourceGroup[],
  heights: number[],
  { buffer, offset }: Allocation,
): SourceWindow[] {
  let next = offset;
  return sources.map((source, i) => {
    const { validity, ofBands } = validityBands(source);
    const placed = [...source.bands, ...validity].map(({ header, index }) => {
      const at = next;
      next += bandBytes(header, heights[i]);
      return { header, index, offset: at };
    });
    const rasters = [...new Set(placed.map(({ header }) => rasterName(header)))];
    const files = rasters.map((name) => {
      const own = placed.filter(({ header }) => rasterName(header) === name);
      const indexes = own.map(({ index }) => index);
      const offsets = own.map(({ offset }) => offset);
      return new RowBuffer(own[0]!.header, indexes, buffer, offsets);
    });
    const offsets = placed.slice(0, source.bands.length).map(({ offset }) => offset);
    const stored = placed
      .slice(source.bands.length)
      .map(({ header: { dataType }, offset }) => ({ dataType, offset }));
    const validityOf = ofBands.map((at) => (at === null ? null : stored[at]!));
    const { dataType, crs, transform, width, height } = source.bands[0].header;
    const place = { dataType, nodata: source.nodata, crs, transform, width, height };
    return { files, source: { ...place, buffer, offsets, validity: validityOf } };
  });
}

/** A file may hold several rasters, each with its own bands. */
const rasterName = ({ path, blocks }: RasterHeader) =>
  `${path}\n${'dataset' in blocks ? blocks.dataset : ''}\n${'directory' in blocks ? blocks.directory : ''}`;

function cellGroup(
  { scene, grid, write, compress }: CutContext,
  g: number,
  { geocode, sizes }: CellState,
): CellGroup {
  const { name, role, resampling, nodata, colours, bands } = scene.groups[g];
  const { dataType } = bands[0].header;
  return {
    grid: grid.name,
    geocode,
    ...sizes[g],
    name,
    role,
    resampling,
    dataType,
    // The value of --nodata may fit only other groups. Then masks mark the gaps of this one.
    nodata: nodataAsType(dataType, nodata ?? undefined) === undefined ? null : nodata,
    colours,
    bands: bands.map(({ name, commonName, scale, offset, ...tags }) => ({
      name,
      commonName,
      scale,
      offset,
      ...spectralTags(tags),
    })),
    metadata: {
      COLLECTION: write.collection.id,
      SCENE: scene.id,
      GRID: grid.name,
      GEOCODE: geocode,
      DATETIME: new Date(scene.start).toISOString(),
      ...(scene.platform && { PLATFORM: scene.platform }),
    },
    ...(compress && { compressed: true }),
    ...(new Set(validityBands(scene.groups[g]).ofBands).size > 1 && { maskOfEachBand: true }),
  };
}

/** Writes files of empty groups: a tile has all groups of its scene, even those without data in the cell. */
async function writeEmptyFiles(work: CutContext, cells: CellState[]): Promise<void> {
  const { pool, passes, signal, concurrency } = work;
  const blanks = cells.flatMap((cell) =>
    passes.flatMap(({ groups }, p) => (cell.files[p] ? [] : [{ cell, groups, p }])),
  );
  await mapConcurrent(blanks, concurrency, async ({ cell, groups, p }) => {
    const blank: EmptyFileTask = { kind: 'blank', cells: groups.map((g) => cellGroup(work, g, cell)) };
    cell.files[p] = await writeFile(work, cell, await pool.run(blank, signal));
  });
}

/** Replaces the masks by ones detected from the files of all groups. */
async function detectCloudInCells(
  work: CutContext,
  cells: CellState[],
  { test, bands }: CloudDetector,
): Promise<void> {
  const { pool, memory, scene, grid, signal, concurrency } = work;
  const finest = scene.groups.indexOf(referenceGroup(scene));
  const stagedCell = (cell: CellState) => ({
    cell: cellGroup(work, finest, cell),
    images: stagedImages(cell),
    mask: cell.files.at(-1)!.groups.at(-1)!,
  });
  const assess = async (cell: CellState, task: DetectCloudTask) => {
    const written = cell.files.at(-1)!;
    const { path } = task.images.mask!;
    try {
      const { record, ...figures } = await pool.run(task, signal);
      await work.write.syncFile(path);
      written.groups = [...written.groups.slice(0, -1), record];
      written.mask = { ...figures, coverage: written.mask!.coverage };
    } catch (error) {
      throw asStorageError(error, path);
    }
    work.step();
  };
  if (test.kind === 'model') {
    await mapConcurrent(cells, concurrency, (cell) =>
      assess(cell, { kind: 'assess', ...stagedCell(cell), test, bands }),
    );
    return;
  }
  if (cells.length === 0) return;
  const geocodes = cells.map(({ geocode }) => geocode);
  const layout = layOutCells(grid, geocodes, referenceGroup(scene).resolution, memory.size);
  const { release, ...shared } = await memory.allocate(layout.bytes, scene.path, signal);
  try {
    const light = { ...shared, width: layout.width, height: layout.height };
    const partOf = ({ geocode }: CellState) => layout.parts.get(geocode) as LightPart;
    new Uint8Array(light.buffer, light.offset, layout.bytes).fill(Mask.nodata);
    await mapConcurrent(cells, concurrency, (cell) =>
      pool.run({ kind: 'light', ...stagedCell(cell), bands, light, part: partOf(cell) }, signal),
    );
    await pool.run({ kind: 'shadow', light, sunAzimuth: test.sunAzimuth }, signal);
    await mapConcurrent(cells, concurrency, (cell) =>
      assess(cell, { kind: 'assess', ...stagedCell(cell), light, part: partOf(cell) }),
    );
  } finally {
    release();
  }
}

function stagedImages({ files, folder }: CellState): Record<string, ImageFile> {
  const images = files.flatMap((file) => {
    let start = 0;
    return file!.groups.map(({ name, file: of, bytes }) => {
      const image = { path: join(folder!, `${of}.tif`), start, bytes };
      start += bytes;
      return [name, image] as const;
    });
  });
  return Object.fromEntries(images);
}

/**
 * Writes a file unless its task has, and makes it durable. Runs in the main thread: while the disk syncs a file, the worker threads cut the
 * next ones. The folder's entry is synced when the tile is published.
 */
async function writeFile(
  work: CutContext,
  cell: CellState,
  { file, validity, mask }: CutResult,
): Promise<WrittenFile> {
  const { name, bytes, groups } = file;
  const path = await stagedPath(work, cell, name);
  try {
    await (bytes ? work.write.writeFile(path, bytes) : work.write.syncFile(path));
  } catch (error) {
    throw asStorageError(error, path);
  }
  return { groups, validity, mask };
}

async function stagedPath({ write }: CutContext, cell: CellState, file: string): Promise<string> {
  cell.folder ??= await write.stagingFolder(cell.geocode);
  return join(cell.folder, `${file}.tif`);
}

function tileRecord({ scene, write, passes }: CutContext, { geocode, files }: CellState): TileRecord {
  const written = files as WrittenFile[];
  // The groups of a file have the order of its images, and the mask is the last image of the last file.
  const images = written.map((file) => file.groups.values());
  const nextOf = (file: number) => images.at(file)!.next().value as GroupRecord;
  const groups = scene.groups.map((_, g) => nextOf(passes.findIndex((pass) => pass.groups.includes(g))));
  const { coverage, shares: _, ...figures } = written.at(-1)!.mask!;
  return {
    id: write.tileId(geocode),
    collection: write.collection.id,
    scene: scene.id,
    grid: write.collection.grid,
    geocode,
    version: write.version,
    source: 'raw',
    start: scene.start,
    end: scene.end,
    platform: scene.platform,
    coverage,
    ...figures,
    groups: [...groups, nextOf(-1)],
    derivedFrom: [],
    ...(scene.via !== undefined && { via: scene.via }),
    createdAt: Date.now(),
  };
}
