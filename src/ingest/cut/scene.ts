/** Cuts the cells of a scene into staged tiles: pass by pass, chunk by chunk. */
import { join } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import type { Grid, PixelGrid } from '../../grid/index.js';
import { Mask, nodataAsType, type RasterHeader, spectralTags } from '../../raster/index.js';
import { asStorageError, type GroupRecord, type SceneWrite, type TileRecord } from '../../storage/index.js';
import { type CloudDetector, type LightPart, layOutCells } from '../cloud/detect.js';
import { type CutPass, groupPixelGrids, isCubeGroup, planCutPasses, type ScenePlan } from '../plan.js';
import {
  type IngestHooks,
  type IngestOptions,
  referenceGroup,
  requireGroup,
  type Scene,
  type SourceBand,
  type SourceGroup,
} from '../scene.js';
import { bandBytes, planChunks, windowBytes, windowHeights } from './chunks.js';
import { cubeMemoryBounds } from './cube.js';
import { type Allocation, RowBuffer, type SharedMemory } from './memory.js';
import type { NegativeCount } from './negative-reflectances.js';
import type { IngestPool } from './pool.js';
import {
  type CellFile,
  type CellGroup,
  type CubeResult,
  type CubeTask,
  type CutResult,
  type DetectCloudTask,
  decodeTasks,
  type EmptyTileTask,
  type SourceRows,
  type TileMask,
  validityBands,
  type WarpTask,
} from './tasks.js';
import { emptyValidity, type GroupValidity } from './validity.js';

/** State of a cell while its groups are cut. */
interface CellState {
  geocode: string;
  /** Pixels of each group of the scene. */
  sizes: PixelGrid[];
  /** For each group of the scene that is cut; null if the cell holds no data of it. */
  results: (WrittenResult | null)[];
  /** Folder of its staged files. */
  folder: string | undefined;
}

/** The result of a cut whose files are written. */
interface WrittenResult {
  record: GroupRecord;
  /** For the mask, which is made later; null with a mask, because thousands of cells would need much memory. */
  validity: GroupValidity | null;
  mask: (Omit<TileMask, 'file'> & { record: GroupRecord }) | null;
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
    cells.set(geocode, { geocode, sizes: groupPixelGrids(plan, geocode), results: [], folder: undefined });
  }
  let steps = 0;
  const passes = scene.groups.length + (test ? 1 : 0);
  const step = () => hooks.onProgress?.(++steps / (geocodes.length * passes));
  const { signal } = hooks;
  const concurrency = 4 * pool.threads;
  const negative = { clear: 0, negative: 0 };
  const work: CutContext = {
    ...{ pool, memory, scene, grid, write, compress, signal, concurrency, negative, step },
  };
  // The finest group is cut last: its mask marks the pixels with data of all groups.
  const reference = scene.groups.indexOf(referenceGroup(scene));
  const { others, mask } = planCutPasses(scene, test === null);
  for (const pass of others) await cutPass(work, pass, cells);
  for (const [g, group] of scene.groups.entries())
    if (isCubeGroup(group) && g !== reference) await cutCubes(work, g, cells, null);
  if (mask) await cutPass(work, mask, cells);
  else await cutCubes(work, reference, cells, qualityRasters(scene, test === null));

  const holdsData = ({ results }: CellState) =>
    scene.groups.some((group, g) => group.role === 'data' && results[g]);
  const kept = [...cells.values()].filter(holdsData);
  hooks.onTiles?.(kept.length);
  await writeEmptyGroups(work, kept);
  if (test) {
    steps += cells.size - kept.length;
    await detectCloudInCells(work, kept, test);
  }
  await write.publish(kept.map(({ geocode }) => geocode));
  signal?.throwIfAborted();
  return { tiles: kept.map((cell) => tileRecord(scene, write, cell)), negative };
}

/** Cuts the groups of one pass out of all cells. */
async function cutPass(work: CutContext, pass: CutPass, cells: Map<string, CellState>): Promise<void> {
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
        for (const { group, source, mask } of pass.cuts) {
          const own = cellGroup(work, group, cell);
          const task: WarpTask = {
            ...{ kind: 'cut', cell: own, sources: read, source },
            mask: mask && { quality: mask, others: otherGroups(scene, cell, group) },
          };
          const result = await pool.run(task, signal);
          cell.results[group] = result && (await writeFiles(work, cell, result));
          work.negative.clear += result?.negative?.clear ?? 0;
          work.negative.negative += result?.negative?.negative ?? 0;
          work.step();
        }
      });
    }
  } finally {
    allocation.release();
  }
}

/** The data groups of a cell except one. They are cut before it. */
function otherGroups({ groups }: Scene, { results, sizes }: CellState, g: number): GroupValidity[] {
  return groups.flatMap(({ role }, other) =>
    role === 'data' && other !== g ? [results[other]?.validity ?? emptyValidity(sizes[other]!)] : [],
  );
}

/**
 * Cuts a cube out of all cells. Each cell is one task, which reads its source and writes its file. `quality`: null if the tasks make no
 * mask.
 */
async function cutCubes(
  work: CutContext,
  g: number,
  cells: Map<string, CellState>,
  quality: NonNullable<CubeTask['mask']>['quality'] | null,
): Promise<void> {
  const { pool, memory, scene, write, signal } = work;
  const { bands } = scene.groups[g]!;
  const [{ header }] = bands as [SourceBand];
  const share = Math.floor(memory.size / (pool.threads + 1));
  await mapConcurrent([...cells.values()], pool.threads + 1, async (cell) => {
    const group = cellGroup(work, g, cell);
    const { least, most } = cubeMemoryBounds(group, header);
    const bytes = Math.max(least, Math.min(most, share));
    const allocation = await memory.allocate(bytes, scene.path, signal);
    try {
      cell.folder ??= await write.stagingFolder(cell.geocode);
      const path = join(cell.folder, `${group.name}.tif`);
      const { buffer, offset } = allocation;
      const rasters = bands.map(({ header, index, detector }) => ({ header, index, detector }));
      const mask = quality && { quality, others: otherGroups(scene, cell, g) };
      const task: CubeTask = { kind: 'cube', cell: group, bands: rasters, path, buffer, offset, bytes, mask };
      const result = await pool.run(task, signal).catch((error) => {
        throw asStorageError(error, path);
      });
      if (result)
        await write.syncFile(path).catch((error) => {
          throw asStorageError(error, path);
        });
      cell.results[g] = result && (await writeMask(work, cell.folder, result));
      work.step();
    } finally {
      allocation.release();
    }
  });
}

/** The bands with quality codes of a scene. */
function qualityRasters(scene: Scene, withQuality: boolean): NonNullable<CubeTask['mask']>['quality'] {
  if (!withQuality) return [];
  return scene.quality.map(({ group, band, codes }) => {
    const { bands, nodata } = requireGroup(scene, group);
    const { header, index } = bands[band]!;
    return { header, index, nodata, codes };
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

/** Writes empty groups: a tile has all groups of its scene, even those without data in the cell. */
async function writeEmptyGroups(work: CutContext, cells: CellState[]): Promise<void> {
  const { pool, scene, signal, concurrency } = work;
  const blanks = cells.flatMap((cell) =>
    scene.groups.flatMap((_, g) => (cell.results[g] ? [] : [{ cell, g }])),
  );
  await mapConcurrent(blanks, concurrency, async ({ cell, g }) => {
    const blank: EmptyTileTask = { kind: 'blank', cell: cellGroup(work, g, cell) };
    const result = await pool.run(blank, signal);
    cell.results[g] = await writeFiles(work, cell, result);
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
    folder: cell.folder as string,
  });
  const assess = async (cell: CellState, task: DetectCloudTask) => {
    const { file, ...figures } = await pool.run(task, signal);
    await writeStaged(work.write, task.folder, file);
    const written = cell.results[finest] as WrittenResult;
    written.mask = { ...figures, record: file.record, coverage: written.mask!.coverage };
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

/** Runs in the main thread: while the disk syncs a file, the worker threads cut the next ones. */
async function writeFiles(
  work: CutContext,
  cell: CellState,
  { file, validity, mask }: CutResult,
): Promise<WrittenResult> {
  const { write } = work;
  cell.folder ??= await write.stagingFolder(cell.geocode);
  await writeStaged(write, cell.folder, file);
  return writeMask(work, cell.folder, { record: file.record, validity, mask });
}

/** Writes the mask of a group whose own file is written. */
async function writeMask(
  { write }: CutContext,
  folder: string,
  { record, validity, mask }: CubeResult,
): Promise<WrittenResult> {
  if (mask) await writeStaged(write, folder, mask.file);
  if (!mask) return { record, validity, mask };
  const { file, ...figures } = mask;
  return { record, validity: null, mask: { ...figures, record: file.record } };
}

/** The folder's entry is synced when the tile is published. */
async function writeStaged(write: SceneWrite, folder: string, { record, bytes }: CellFile): Promise<void> {
  const path = join(folder, `${record.name}.tif`);
  try {
    await write.writeFile(path, bytes);
  } catch (error) {
    throw asStorageError(error, path);
  }
}

function tileRecord(scene: Scene, write: SceneWrite, { geocode, results }: CellState): TileRecord {
  const groups = results as WrittenResult[];
  const mask = groups.find((group) => group.mask)?.mask as NonNullable<WrittenResult['mask']>;
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
    coverage: mask.coverage,
    cloudCover: mask.cloudCover,
    groups: [...groups.map(({ record }) => record), mask.record],
    footprint: mask.footprint,
    ...(mask.dataParts !== undefined && { dataParts: mask.dataParts }),
    derivedFrom: [],
    ...(scene.via !== undefined && { via: scene.via }),
    ...(scene.warnings.length > 0 && { warnings: scene.warnings }),
    createdAt: Date.now(),
  };
}
