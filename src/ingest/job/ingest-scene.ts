/**
 * Converts a scene on disk to tiles: finds its cells, decodes its rows through rolling windows, cuts every cell in worker
 * threads, and commits all tiles together.
 */
import { bytesPerSample } from '../../raster/index.js';
import type { SceneRecord, Storage } from '../../storage/index.js';
import { chooseDetector } from '../cloud/index.js';
import { type CutResources, cutScene } from '../cut/index.js';
import { noValidPixels, tileTooLarge } from '../errors.js';
import type { IngestHooks, IngestOptions } from '../ingest-options.js';
import { type FileNameFacts, referenceGroup } from '../ingest-scene-description.js';
import { coverScene, groupPixelGrids, isCubeGroup, type ScenePlan } from '../plan/index.js';
import { computeFingerprint, type FileDigests } from './ingest-scene-fingerprint.js';

export interface IngestContext extends CutResources {
  storage: Storage;
  /** Path of the operator's s2cloudless model (LightGBM), if there is one. */
  cloudModel: string | undefined;
  digests: FileDigests;
}

export interface SceneResult {
  id: string;
  collection: string;
  tiles: number;
  /** True if the store already held exactly this scene. */
  unchanged: boolean;
  /** True if an earlier delivery of the scene, or one with other options, was replaced. */
  replaced: boolean;
  warnings: string[];
  /** Dry run only: the cells that the scene touches. Those without a valid pixel would have no tile. */
  geocodes?: string[];
  /** Dry run with a name pattern only: facts in the names of the files. */
  names?: FileNameFacts[];
}

/** Ingests one scene. All of its tiles become visible together, or none. */
export async function ingestScene(
  context: IngestContext,
  plan: ScenePlan,
  { dryRun = false, cloudTest = false, compress: compressCubes }: IngestOptions,
  hooks: IngestHooks = {},
): Promise<SceneResult> {
  const { storage } = context;
  const { scene, collection, grid } = plan;
  const { precision } = collection;
  const result = { id: scene.id, collection: collection.id, unchanged: false, replaced: false };
  const previous = await storage.getScene(collection.id, scene.id);
  const test = chooseDetector(scene, context.cloudModel, cloudTest);
  // The option does not affect other groups, which are always compressed.
  const compress = scene.groups.some(isCubeGroup) ? compressCubes : undefined;
  const settings = { grid: grid.name, precision, test, compress };
  const fingerprint = await computeFingerprint(scene, settings, context.digests, hooks.signal);
  const resultIfUnchanged = async (known: SceneRecord | undefined): Promise<SceneResult | undefined> => {
    // A tile that was damaged on disk is made again.
    if (known?.fingerprint !== fingerprint || !(await storage.isSceneIntact(collection, known)))
      return undefined;
    // The record has the warnings of the delivery that made the tiles.
    return { ...result, tiles: known.geocodes.length, unchanged: true, warnings: scene.warnings };
  };
  const unchanged = await resultIfUnchanged(previous);
  if (unchanged) return unchanged;

  const cells = coverScene(scene, grid, precision);
  rejectLargeTiles(plan, cells);
  const { start, end, platform, warnings } = scene;
  const replaced = previous !== undefined;
  if (dryRun)
    return { ...result, tiles: cells.length, replaced, warnings, geocodes: cells, names: scene.names };
  hooks.onCells?.(cells.length);
  const write = await storage.beginScene(collection, scene.id, cells);
  try {
    // Another job may have ingested it since the check above.
    const now = await storage.getScene(collection.id, scene.id);
    const delivered = now?.version === previous?.version ? undefined : await resultIfUnchanged(now);
    if (delivered) {
      await write.abort();
      return delivered;
    }
    const tiles = await cutScene(context, plan, cells, write, test, compress, hooks);
    await hooks.onRead?.();
    if (tiles.length === 0) throw noValidPixels(scene.path);
    await write.commit({ fingerprint, start, end, platform, warnings }, tiles);
    return { ...result, tiles: tiles.length, replaced, warnings };
  } catch (error) {
    await write.abort();
    throw error;
  }
}

/** A thread holds all bands of a tile, and its files, in memory. Cubes are cut in pieces, into files of at most 4 GiB. */
const MAX_TILE_BYTES = 512e6;
const MAX_CUBE_BYTES = 4e9;

function rejectLargeTiles(plan: ScenePlan, cells: string[]): void {
  const { scene } = plan;
  for (const geocode of cells) {
    const sizes = groupPixelGrids(plan, geocode);
    const bytesOf = (g: number) => {
      const { width, height } = sizes[g];
      const { bands } = scene.groups[g];
      return width * height * bands.length * bytesPerSample(bands[0].header.dataType);
    };
    const groups = [...scene.groups.keys()];
    const [cubes, others] = [true, false].map((one) =>
      groups.filter((g) => isCubeGroup(scene.groups[g]) === one),
    );
    const bytes = others.reduce((sum, g) => sum + bytesOf(g), 0);
    if (bytes > MAX_TILE_BYTES || cubes.some((g) => bytesOf(g) > MAX_CUBE_BYTES)) {
      const { width, height } = sizes[scene.groups.indexOf(referenceGroup(scene))];
      throw tileTooLarge(scene.path, geocode, width, height);
    }
  }
}
