/**
 * A scene on disk becomes tiles: describe, find its cells, decode its rows once through rolling windows, cut every cell in
 * worker threads, publish the files as they arrive, and commit them all together.
 */
import { type Grid, type GridName, gridByName, pixelGrids } from '../geocode/index.js';
import { bytesPerSample, type WorkerPool } from '../raster/index.js';
import { inLanes, type SceneWrite, type Storage, type TileRecord } from '../storage/index.js';
import { finestGroup, sceneCells, scenePrecision } from './cells.js';
import { type Chunk, planChunks, windowCapacity } from './chunks.js';
import { noValidPixels, tileTooLarge } from './errors.js';
import { fingerprintOf } from './fingerprint.js';
import { RowWindow } from './row-window.js';
import type { DescribeOptions, Scene } from './scene.js';
import type { CutResult, CutTask, IngestTask } from './tasks.js';

export interface IngestContext {
  storage: Storage;
  workers: WorkerPool<IngestTask, CutResult | null>;
  /** Bytes of source rows held at once. */
  memory: number;
}

export interface IngestOptions extends DescribeOptions {
  grid?: GridName;
  precision?: number;
}

export interface IngestHooks {
  /** Called with the scene's id before anything is written; what it throws fails the scene. */
  onScene?(collection: string, scene: string): void;
  signal?: AbortSignal;
  /** Called with the number of cells of the scene, and after each of them. */
  onCells?(total: number): void;
  onCell?(stored: boolean): void;
}

export interface SceneResult {
  id: string;
  collection: string;
  tiles: number;
  /** True where the store already held exactly this scene. */
  unchanged: boolean;
  /** True where an earlier delivery of the scene, or one with other flags, was replaced. */
  replaced: boolean;
  warnings: string[];
}

/** Ingests one scene. All of its tiles become visible together, or none. */
export async function ingestScene(
  context: IngestContext,
  scene: Scene,
  options: IngestOptions,
  hooks: IngestHooks = {},
): Promise<SceneResult> {
  const { storage } = context;
  const id = options.collection ?? scene.collection.id;
  const existing = await storage.getCollection(id);
  const grid = gridByName(options.grid ?? existing?.grid ?? 'geohash');
  const precision = options.precision ?? existing?.precision ?? scenePrecision(scene, grid);
  const collection = await storage.collectionFor({ ...scene.collection, id, grid: grid.name, precision });

  hooks.onScene?.(id, scene.id);
  const fingerprint = await fingerprintOf(scene, grid.name, precision, hooks.signal);
  const previous = await storage.getScene(id, scene.id);
  // A tile that was damaged on disk is made again.
  if (previous?.fingerprint === fingerprint && (await storage.isWhole(collection, previous))) {
    const { geocodes, warnings } = previous;
    return {
      id: scene.id,
      collection: id,
      tiles: geocodes.length,
      unchanged: true,
      replaced: false,
      warnings,
    };
  }

  const cells = sceneCells(scene, grid, precision);
  warnOfSmallTiles(scene, grid, cells);
  refuseLargeTiles(scene, grid, cells);
  const chunks = planChunks(scene, grid, cells, context.memory);
  hooks.onCells?.(cells.length);
  const write = await storage.beginScene(collection, scene.id, cells);
  try {
    const tiles = await cutChunks(context, scene, grid, chunks, write, hooks);
    if (tiles.length === 0) throw noValidPixels(scene.path);
    const { start, end, platform, warnings } = scene;
    await write.commit({ fingerprint, start, end, platform, warnings }, tiles);
    return {
      id: scene.id,
      collection: id,
      tiles: tiles.length,
      unchanged: false,
      replaced: previous !== undefined,
      warnings,
    };
  } catch (error) {
    await write.abort();
    throw error;
  }
}

/** The first scene of a collection fixes its cells; scenes with much coarser pixels then make tiles of a few pixels. */
const SMALL_TILE = 32;

function warnOfSmallTiles(scene: Scene, grid: Grid, cells: string[]): void {
  if (cells.length === 0) return;
  const [{ width }] = pixelGrids(grid, cells[0], [finestGroup(scene).resolution]);
  if (width < SMALL_TILE) {
    scene.warnings.push(
      `its tiles are only ${width} px wide; put scenes with such pixels into a collection of their own`,
    );
  }
}

/** A thread holds all bands of a tile, and its files, at once. */
const MAX_TILE_BYTES = 512e6;

function refuseLargeTiles(scene: Scene, grid: Grid, cells: string[]): void {
  const resolutions = scene.groups.map((group) => group.resolution);
  for (const geocode of cells) {
    const sizes = pixelGrids(grid, geocode, resolutions);
    const bytes = scene.groups.reduce((sum, group, g) => {
      const { width, height } = sizes[g];
      return sum + width * height * group.bands.length * bytesPerSample(group.bands[0].header.dataType);
    }, 0);
    if (bytes > MAX_TILE_BYTES) {
      const { width, height } = sizes[scene.groups.indexOf(finestGroup(scene))];
      throw tileTooLarge(scene.path, geocode, width, height);
    }
  }
}

async function cutChunks(
  context: IngestContext,
  scene: Scene,
  grid: Grid,
  chunks: Chunk[],
  write: SceneWrite,
  hooks: IngestHooks,
): Promise<TileRecord[]> {
  const windows = sourceWindows(scene, chunks);
  // One task in each thread, and one that waits for it.
  const lanes = 2 * context.workers.size;
  const tiles: TileRecord[] = [];
  for (const chunk of chunks) {
    hooks.signal?.throwIfAborted();
    const decoding = windows.flatMap(({ window, group }) => window.advance(...chunk.rows[group], lanes));
    await inLanes(decoding, lanes, (task) => {
      hooks.signal?.throwIfAborted();
      return context.workers.run(task);
    });

    const cut = await inLanes(chunk.geocodes, lanes, async (geocode) => {
      hooks.signal?.throwIfAborted();
      const folder = await write.stagingFolder(geocode);
      const task = cutTask(scene, write.collection.id, grid, geocode, windows, folder);
      const result = await context.workers.run(task);
      hooks.onCell?.(result !== null);
      return result && tileRecord(scene, write, geocode, result);
    });
    const made = cut.filter((tile) => tile !== null);
    await write.publish(made.map((tile) => tile.geocode));
    tiles.push(...made);
  }
  hooks.signal?.throwIfAborted();
  return tiles;
}

interface SourceWindow {
  window: RowWindow;
  group: number;
}

/** One rolling window a file of every group. */
function sourceWindows(scene: Scene, chunks: Chunk[]): SourceWindow[] {
  return scene.groups.flatMap((group, g) => {
    const capacity = windowCapacity(chunks, scene, g);
    const files = [...new Set(group.bands.map((band) => band.header.path))];
    return files.map((file) => {
      const bands = group.bands.filter((band) => band.header.path === file);
      const indexes = bands.map((band) => band.index);
      return { group: g, window: new RowWindow(bands[0].header, indexes, capacity) };
    });
  });
}

function cutTask(
  scene: Scene,
  collection: string,
  grid: Grid,
  geocode: string,
  windows: SourceWindow[],
  folder: string,
): CutTask {
  const finest = finestGroup(scene);
  return {
    kind: 'cut',
    grid: grid.name,
    geocode,
    folder,
    quality: scene.quality,
    finest: scene.groups.indexOf(finest),
    metadata: {
      COLLECTION: collection,
      SCENE: scene.id,
      GRID: grid.name,
      GEOCODE: geocode,
      DATETIME: new Date(scene.start).toISOString(),
      ...(scene.platform && { PLATFORM: scene.platform }),
    },
    groups: scene.groups.map((group, g) => {
      const { header } = group.bands[0];
      const own = windows.filter((w) => w.group === g).map((w) => w.window);
      return {
        name: group.name,
        role: group.role,
        resampling: group.resampling,
        resolution: group.resolution,
        nodata: group.nodata,
        dataType: header.dataType,
        crs: header.crs,
        transform: header.transform,
        width: header.width,
        height: header.height,
        rowStart: own[0].start,
        rowEnd: own[0].end,
        bands: group.bands.map((band) => {
          const window = own.find((w) => w.header.path === band.header.path) as RowWindow;
          const pixels = window.buffers[window.bands.indexOf(band.index)];
          return {
            name: band.name,
            commonName: band.commonName,
            scale: band.scale,
            offset: band.offset,
            pixels,
          };
        }),
      };
    }),
  };
}

function tileRecord(scene: Scene, write: SceneWrite, geocode: string, result: CutResult): TileRecord {
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
    coverage: result.coverage,
    cloudCover: result.cloudCover,
    groups: result.groups,
    footprint: result.footprint,
    derivedFrom: [],
    createdAt: Date.now(),
  };
}
