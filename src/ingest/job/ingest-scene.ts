/**
 * Converts a scene on disk to tiles: finds its cells, decodes its rows through rolling windows, cuts every cell in worker
 * threads, and commits all tiles together.
 */

import type { Bbox } from '../../grid/index.js';
import { bytesPerSample } from '../../raster/index.js';
import type { Storage } from '../../storage/index.js';
import { type CutResources, offsetWarning } from '../cut/index.js';
import { noValidPixels, outsideRegion, tileTooLarge } from '../errors.js';
import type { IngestHooks, IngestOptions } from '../ingest-options.js';
import { type FileNameFacts, referenceGroup } from '../ingest-scene-description.js';
import { coverScene, groupPixelGrids, isCubeGroup, type ScenePlan } from '../plan/index.js';
import type { RemoteSource } from '../remote/index.js';
import { prepareTiles } from '../scene-parts/index.js';
import { computeFingerprint, type FileDigests, sceneSettings } from './ingest-scene-fingerprint.js';
import { pendingCells } from './pending-cells.js';

export interface IngestContext extends CutResources {
  storage: Storage;
  /** Path of the operator's s2cloudless model (LightGBM), if there is one. */
  cloudModel: string | undefined;
  digests: FileDigests;
}

export interface SceneResult {
  id: string;
  collection: string;
  /** Tiles of the scene in the region; for a dry run, the cells. */
  tiles: number;
  /** True if the store already held exactly these tiles. */
  unchanged: boolean;
  /** True if tiles of an earlier delivery of the scene, or of one with other options, were replaced. */
  replaced: boolean;
  warnings: string[];
  /** Dry run only: the cells that the scene touches. Those without a valid pixel would have no tile. */
  geocodes?: string[];
  /** Dry run of a remote scene only: what would be read. */
  fetch?: { requests: number; bytes: number };
  /** Dry run with a name pattern only: facts in the names of the files. */
  names?: FileNameFacts[];
}

/**
 * Ingests one scene, or its cells in a region. All new tiles become visible together, or none. Tiles of the same fingerprint are not made
 * again, and cells outside of the region keep their tiles. Throws TW_INGEST_OUTSIDE_REGION.
 */
export async function ingestScene(
  context: IngestContext,
  plan: ScenePlan,
  options: IngestOptions,
  hooks: IngestHooks = {},
  remote?: RemoteSource,
): Promise<SceneResult> {
  const { storage } = context;
  const { dryRun = false, bbox: region } = options;
  const { scene, collection, grid } = plan;
  const settings = sceneSettings(plan, options, context.cloudModel);
  const fingerprint = await computeFingerprint(scene, settings, context.digests, hooks.signal);
  let covered: string[] | undefined;
  const cover = () => {
    covered ??= coverRegion(plan, region);
    return covered;
  };
  const { start, end, platform, warnings } = scene;
  for (;;) {
    const known = await storage.getScene(collection.id, scene.id);
    const wanted = { storage, collection, grid, known, fingerprint, region, cover };
    const { cells, present, replaced, keep, regions } = await pendingCells(wanted);
    const unchanged = cells.length === 0;
    const result = { id: scene.id, collection: collection.id, unchanged, replaced, warnings };
    // An Item can change while its files do not. Its digest is stored, so that the next run does not open the files.
    const isNewItem = remote?.digest !== undefined && remote.digest !== known?.item;
    if (unchanged && (dryRun || !isNewItem)) return { ...result, tiles: present };
    if (dryRun) {
      const fetch = remote?.plan(plan, cells);
      return {
        ...result,
        tiles: cover().length,
        geocodes: cover(),
        names: scene.names,
        ...(fetch && { fetch }),
      };
    }
    hooks.onCells?.(cells.length);
    const make = await prepareTiles(context, { plan, settings, fingerprint }, cells, hooks, remote);
    const write = await storage.beginScene(collection, scene.id, cells, keep);
    try {
      // Another job may have ingested it in the meantime.
      const isSame = (await storage.getScene(collection.id, scene.id))?.version === known?.version;
      if (!isSame) {
        await write.abort();
        continue;
      }
      const { tiles, parts, negative } = await make(write);
      await hooks.onRead?.();
      const made = parts.reduce((sum, part) => sum + part.tiles.length, tiles.length);
      if (!unchanged && made + present === 0)
        throw region ? outsideRegion(scene.path) : noValidPixels(scene.path);
      const doubt = offsetWarning(negative);
      if (doubt !== undefined && !warnings.includes(doubt)) warnings.push(doubt);
      const item = remote?.digest;
      await write.commit({ fingerprint, start, end, platform, warnings, regions, item }, tiles, parts);
      return { ...result, tiles: present + made };
    } catch (error) {
      await write.abort();
      throw error;
    }
  }
}

function coverRegion(plan: ScenePlan, region: Bbox | undefined): string[] {
  const { scene, collection, grid } = plan;
  const cells = coverScene(scene, grid, collection.precision, region);
  if (cells.length === 0) throw outsideRegion(scene.path);
  rejectLargeTiles(plan, cells);
  return cells;
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
