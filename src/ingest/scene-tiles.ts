/**
 * Converts a scene on disk to tiles: finds its cells, decodes its rows through rolling windows, cuts every cell in worker
 * threads, and commits all tiles together.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Bbox, Grid, GridName } from '../grid/index.js';
import { bytesPerSample, type RasterHeader } from '../raster/index.js';
import {
  type CollectionRecord,
  cellsOfFingerprint,
  type SceneRecord,
  type Storage,
  tileWarnings,
} from '../storage/index.js';
import { addRegion, coverScene, isRegionKnown, regionFilter } from './cells.js';
import { type CloudDetector, chooseDetector } from './cloud/detect.js';
import { readCloudModelFile } from './cloud/lightgbm.js';
import { offsetWarning } from './cut/negative-reflectances.js';
import type { CutResources, CutSettings } from './cut/scene.js';
import { noValidPixels, outsideRegion, tileTooLarge } from './errors.js';
import { prepareTiles, type RemoteSource } from './owners.js';
import { groupPixelGrids, isCubeGroup, type ScenePlan } from './plan.js';
import {
  type FileNameFacts,
  type IngestHooks,
  type IngestOptions,
  referenceGroup,
  type Scene,
  sourceFiles,
} from './scene.js';

/** Increment it if the same input would result in other tiles. */
const PIPELINE_VERSION = 5;

/** Digests by path, cached for one ingest: a file may hold a scene for each day of a year. */
type FileDigests = Map<string, string>;

/** Settings that affect the tiles of a scene, in addition to the scene itself. */
interface SceneSettings extends CutSettings {
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
    PIPELINE: PIPELINE_VERSION,
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

/** Digest of the bands of a scene's files: of which file, and which layer and band of it. */
function bandsDigest({ groups }: Scene, digests: FileDigests): string {
  const bands = groups.flatMap((group) =>
    group.bands.map(({ header, index }) => {
      const layer = Object.values(header.blocks).filter((value) => typeof value === 'string');
      return JSON.stringify([
        digests.get(header.path),
        index,
        ...layer.map((text) => text.replaceAll(header.path, '')),
      ]);
    }),
  );
  return createHash('sha256').update(JSON.stringify(bands.sort())).digest('hex');
}

/** Later scenes of larger catalogues are not compared, because each record is read once. */
const MAX_COMPARED_SCENES = 50_000;

/** Finds stored scenes with the bands of the same files. Reads the catalogue at the first use. */
export class StoredFiles {
  private stored: Promise<Map<string, Set<string>>> | undefined;

  constructor(private readonly storage: Storage) {}

  add(files: string, collection: string, scene: string): void {
    // Nothing is added to a catalogue that is not read yet, and a failed read fails the next search.
    this.stored?.then(
      (stored) =>
        stored.set(files, (stored.get(files) ?? new Set()).add(JSON.stringify([collection, scene]))),
      () => {},
    );
  }

  /** Returns another scene of these bands as `collection/scene`; undefined if none is stored. */
  async otherThan(files: string, collection: string, scene: string): Promise<string | undefined> {
    this.stored ??= this.read();
    for (const name of (await this.stored).get(files) ?? []) {
      const [otherCollection, other] = JSON.parse(name) as [string, string];
      if (otherCollection === collection && other === scene) continue;
      const record = await this.storage.getScene(otherCollection, other);
      if (record?.files === files) return `${otherCollection}/${other}`;
    }
    return undefined;
  }

  private async read(): Promise<Map<string, Set<string>>> {
    const stored = new Map<string, Set<string>>();
    for await (const { record } of this.storage.catalogue.scenes.scan({ limit: MAX_COMPARED_SCENES })) {
      if (!record?.files) continue;
      const { files, collection, id } = record;
      stored.set(files, (stored.get(files) ?? new Set()).add(JSON.stringify([collection, id])));
    }
    return stored;
  }
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
  if (test.kind === 'reflectance') return JSON.stringify(test);
  return createHash('sha256')
    .update(await readCloudModelFile(test.path))
    .digest('hex');
}

interface WantedScene {
  storage: Storage;
  collection: CollectionRecord;
  grid: Grid;
  /** The scene as it is stored. */
  known: SceneRecord | undefined;
  fingerprint: string;
  /** Absent for the whole scene. */
  region: Bbox | undefined;
  /** Computes the cells of the scene in the region. */
  cover(): string[];
}

interface PendingCells {
  cells: string[];
  /** Number of tiles in the region that stay. */
  present: number;
  /** True if tiles of another fingerprint, or damaged ones, are replaced. */
  replaced: boolean;
  /** True for the cells whose tiles stay. */
  keep(geocode: string): boolean;
  /** The regions of this fingerprint after the ingest; undefined for the whole scene. */
  regions: Bbox[] | undefined;
}

/** Returns the cells that have no undamaged tile of this fingerprint, except those that are known to have no data. */
async function pendingCells(wanted: WantedScene): Promise<PendingCells> {
  const { storage, collection, grid, known, fingerprint, region, cover } = wanted;
  const isWanted = region ? regionFilter(grid, region) : () => true;
  const isLatest = known?.fingerprint === fingerprint;
  const former = isLatest ? known.regions : [];
  const isWhole = former === undefined;
  const isKnown = isWhole || (region !== undefined && isRegionKnown(former, region));
  const made = known ? cellsOfFingerprint(known, fingerprint).filter(isWanted) : [];
  const intact = new Set(known ? await storage.intactCells(known, collection, made) : []);
  const wereRead = (former ?? []).map((one) => regionFilter(grid, one));
  const present = new Set(known?.geocodes);
  const isEmpty = (cell: string) => !present.has(cell) && wereRead.some((contains) => contains(cell));
  const cells = isKnown ? made : cover();
  const keep = (cell: string) => intact.has(cell) || !isWanted(cell);
  return {
    cells: cells.filter((cell) => !intact.has(cell) && !isEmpty(cell)),
    present: intact.size,
    replaced: known?.geocodes.some((cell) => !keep(cell)) ?? false,
    keep,
    regions: isWhole || region === undefined ? undefined : addRegion(former, region),
  };
}

export interface IngestContext extends CutResources {
  storage: Storage;
  /** Path of the operator's s2cloudless model (LightGBM), if there is one. */
  cloudModel: string | undefined;
  digests: FileDigests;
  /** Absent if no scene is compared with others. */
  storedFiles?: StoredFiles;
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

/** True if a job that was accepted later than `job` has delivered other tiles of the scene: ids of jobs sort by time. */
const isDeliveredLater = (scene: SceneRecord, fingerprint: string, job: string | undefined): boolean =>
  scene.job !== undefined && job !== undefined && scene.job > job && scene.fingerprint !== fingerprint;

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
  const files = remote ? undefined : bandsDigest(scene, context.digests);
  for (;;) {
    const known = await storage.getScene(collection.id, scene.id);
    const other = files && !known && (await context.storedFiles?.otherThan(files, collection.id, scene.id));
    const same = `its files are already stored as ${other}; "tilewright delete scene ${other}" removes that scene`;
    if (other && !warnings.includes(same)) warnings.push(same);
    if (known && isDeliveredLater(known, fingerprint, hooks.job)) {
      warnings.push(`it stays as job ${known.job} has delivered it, which was accepted later than this job`);
      const tiles = known.geocodes.length;
      return { id: scene.id, collection: collection.id, tiles, unchanged: true, replaced: false, warnings };
    }
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
      // Other nodes may describe their parts with other warnings.
      for (const tile of [tiles, ...parts.map((part) => part.tiles)].flat())
        Object.assign(tile, tileWarnings(warnings));
      const item = remote?.digest;
      const { job } = hooks;
      const facts = { fingerprint, start, end, platform, warnings, regions, files, item, job };
      await write.commit(facts, tiles, parts);
      if (files) context.storedFiles?.add(files, collection.id, scene.id);
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
