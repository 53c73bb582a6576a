import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { GridName } from '../../grid/index.js';
import type { RasterHeader } from '../../raster/index.js';
import { type CloudDetector, chooseDetector, readCloudModelFile } from '../cloud/index.js';
import type { CutSettings } from '../cut/index.js';
import type { IngestOptions } from '../ingest-options.js';
import { type Scene, sourceFiles } from '../ingest-scene-description.js';
import { isCubeGroup, type ScenePlan } from '../plan/index.js';

/** Increment it if the same input would result in other tiles. */
const PIPELINE = 4;

/** Digests by path, cached for one ingest: a file may hold a scene for each day of a year. */
export type FileDigests = Map<string, string>;

/** Settings that affect the tiles of a scene, in addition to the scene itself. */
export interface SceneSettings extends CutSettings {
  grid: GridName;
  precision: number;
}

/** `cloudModel`: path of the operator's model, if there is one. Adds a warning to the scene if cloud cannot be detected. */
export function sceneSettings(
  { scene, collection, grid }: ScenePlan,
  { cloudTest = false, compress }: IngestOptions,
  cloudModel: string | undefined,
): SceneSettings {
  return {
    grid: grid.name,
    precision: collection.precision,
    test: chooseDetector(scene, cloudModel, cloudTest),
    // The option does not affect other groups, which are always compressed.
    compress: scene.groups.some(isCubeGroup) ? compress : undefined,
  };
}

/**
 * Digest of everything that affects a scene's tiles: the bytes of its files and every option. File names and paths do not
 * count, so that a copy elsewhere is the same scene.
 */
export async function computeFingerprint(
  scene: Scene,
  { grid, precision, test, compress }: SceneSettings,
  digests: FileDigests,
  signal?: AbortSignal,
): Promise<string> {
  for (const file of sourceFiles(scene))
    if (!digests.has(file)) digests.set(file, await digestFile(file, signal));
  const { id, platform, start, end, quality } = scene;
  const groups = scene.groups.map(({ bands, ...group }) => ({
    ...group,
    bands: bands.map(({ header, ...band }) => ({
      ...band,
      file: digests.get(header.path),
      ...(header.mask && header.mask.path !== header.path && { mask: digests.get(header.mask.path) }),
      ...(header.recoding && { recoding: createHash('sha256').update(header.recoding.table).digest('hex') }),
      ...(header.isDescribedOutside && { described: externalDescription(header) }),
    })),
  }));
  const codes = quality.map((band) => ({
    ...band,
    codes: createHash('sha256').update(band.codes).digest('hex'),
  }));
  const everything = {
    PIPELINE,
    grid,
    precision,
    id,
    platform,
    start,
    end,
    groups,
    quality: codes,
    test: test && (await detectorDigest(test)),
    compress,
  };
  return createHash('sha256').update(JSON.stringify(everything, stringifyNonFinite)).digest('hex');
}

/** Properties that are not in the file itself: a corrected header, or other georeferencing, results in other tiles. */
function externalDescription({ width, height, dataType, crs, transform, blocks }: RasterHeader) {
  const layout = blocks.reader === 'envi' || blocks.reader === 'mat' ? blocks : undefined;
  return { width, height, dataType, crs: crs.proj4, transform, layout };
}

/** JSON would replace NaN and infinite numbers by null. */
const stringifyNonFinite = (_: string, value: unknown) =>
  typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;

async function digestFile(path: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash, { signal });
  return hash.digest('hex');
}

/** A model is identified by its bytes, not by its path. */
async function detectorDigest({ test }: CloudDetector): Promise<string> {
  if (test.kind === 'reflectance') return test.kind;
  return createHash('sha256')
    .update(await readCloudModelFile(test.path))
    .digest('hex');
}
