/**
 * Makes tiles from other tiles as a job: skips tiles that are up to date, makes the others in worker threads, writes in batches, and keeps
 * finished tiles if it is stopped. A run can be repeated, and then makes only missing or stale tiles.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { mapConcurrent, SerialQueue, TaskPool } from '../async/index.js';
import { TilewrightError } from '../errors.js';
import {
  addFailure,
  addFetched,
  addSkipped,
  emptyCounts,
  firstReasons,
  type JobContext,
  mergeCounts,
  type Process,
  sumOf,
  TILE_COUNTS_SCHEMA,
  type TileCounts,
} from '../jobs/index.js';
import { checkFilter, filterSchema, type TileFinder } from '../query/index.js';
import {
  asStorageError,
  type DerivedWrite,
  derivedTileId,
  fsyncPath,
  type ObsoleteTile,
  type Storage,
  storageFull,
  type TileRecord,
  tileWarnings,
  withPinnedTiles,
  writeFileSynced,
} from '../storage/index.js';
import { COUNT, objectOf, TEXT } from '../utils/json-schema.js';
import { plural } from '../utils/text.js';
import { deriveFailed, noTileDerived } from './errors.js';
import { isShareWarning, shareWarnings } from './shares.js';
import type { CutTileTask, FillTileTask, MadeTile, NewTile, RimPixels, TileFiles } from './tasks.js';
import type { DeriveHandlers } from './worker.js';

/** Threads or processes that make tiles. */
export interface TileMaker<T> {
  readonly threads: number;
  /** Resolves to null if the inputs make no tile. */
  make(task: T, signal: AbortSignal): Promise<MadeTile | null>;
}

interface DeriveContext<T> {
  storage: Storage;
  /** Finds tiles on all nodes. */
  finder: TileFinder;
  workers: TileMaker<T>;
}

export type TileProcessContext = DeriveContext<FillTileTask | CutTileTask> & { workers: DerivePool };

export interface DeriveResults extends TileCounts {
  /** Existing tiles that were made from the same versions of the same inputs. */
  unchanged: number;
  /** Former tiles that were removed because no tile can be made from their present inputs; absent if there were none. */
  removed?: number;
  /** If clouds were replaced: pixels that the masks call clear, and those of them that were replaced close to clouds. */
  rims?: RimPixels;
  /** For reasons of `skipped` that depend on pixels: the id of one of the tiles. */
  examples?: Record<string, string>;
}

/** The properties of a new tile that are known before its pixels. */
type DerivedTileProperties = Pick<
  TileRecord,
  'collection' | 'scene' | 'grid' | 'geocode' | 'source' | 'start' | 'end' | 'platform' | 'model'
>;

/** The properties of a tile that is made from a date of `tile`, in its cell or in another one. */
export function derivedProperties(
  { collection, scene, grid, geocode, start, end, platform }: TileRecord,
  source: TileRecord['source'],
  cell: Pick<TileRecord, 'grid' | 'geocode'> = { grid, geocode },
): DerivedTileProperties {
  return { collection, scene, grid: cell.grid, geocode: cell.geocode, source, start, end, platform };
}

/** A tile to make. */
export interface TileDerivation<T = FillTileTask | CutTileTask> {
  facts: DerivedTileProperties;
  /** Tiles whose pixels may be used, in the order of their numbers. */
  inputs: TileRecord[];
  /** Tiles around the cell that are read too. They are not part of the tile's id, but a new version of one replaces the tile. */
  around?: TileRecord[];
  /** Other dates of the cell that a model reads, like `around`. The Item of the tile lists them. */
  history?: TileRecord[];
  /** Parameters that are part of the tile's id, as its inputs are: other parameters make another tile. */
  parameters: object;
  /** Digest of a computation that can change, such as a fitted transform: a new digest replaces the tile. */
  recipe?: string;
  /** Warnings about the tile that do not depend on its pixels. */
  warnings?: string[];
  /** Warnings about many tiles, which the job logs itself. */
  jobWarnings?: string[];
  /** `stage` returns the absolute path of the tile's new folder, for a maker that writes large files itself. */
  task: (tile: NewTile, inputs: TileFiles[], stage: () => Promise<string>) => T | Promise<T>;
}

/** A derivation, the reason why an input has none, or an obsolete derivation whose former tile is removed. */
export type PlannedDerivation<T = FillTileTask | CutTileTask> =
  | TileDerivation<T>
  | { skipped: string }
  | { obsolete: Pick<TileDerivation, 'facts' | 'inputs' | 'parameters'> };

/** Tiles of one durable plan. */
const MAX_BATCH_TILES = 1000;
/** Tiles whose warnings are logged. */
const MAX_WARNED_TILES = 100;
/** Sources of tiles that are made to be clear, so that they state how many of their pixels are not. */
const COMPOSITES: ReadonlySet<TileRecord['source']> = new Set(['filled', 'cloud-free']);
/** Longest time between two commits. */
const COMMIT_INTERVAL_MS = 5000;

/**
 * Makes all tiles that `planned` yields, each once. A tile that was made from the same versions of the same inputs, by the same version of
 * a model, is kept. A former tile is removed if no tile can be made from its inputs any more. A tile that fails is reported and the others
 * continue; the run ends immediately if the data folder cannot be written. `reasonForNone`: why a task may make no tile.
 */
export function deriveTiles<T>(
  context: DeriveContext<T>,
  planned: AsyncIterable<PlannedDerivation<T>>,
  job: JobContext,
  reasonForNone: string,
): Promise<DeriveResults> {
  return new DeriveRun(context, job, reasonForNone).run(planned);
}

/** A tile to make, and the one that it replaces. */
interface PendingTile<T> {
  id: string;
  derivation: TileDerivation<T>;
  former: TileRecord | undefined;
}

/** One run. Invariant: the files of the tiles in `staged` are complete and synced in the folder of the write, and not committed. */
class DeriveRun<T> {
  private readonly counts = { total: 0, done: 0, failed: 0, skipped: 0 };
  private readonly results: DeriveResults = { ...emptyCounts(), unchanged: 0 };
  private staged: TileRecord[] = [];
  /** Former tiles to remove with the next commit. */
  private obsolete: ObsoleteTile[] = [];
  private committedAt = performance.now();
  /** Number of tiles with warnings. */
  private warned = 0;
  private readonly commits = new SerialQueue();

  constructor(
    private readonly context: DeriveContext<T>,
    private readonly job: JobContext,
    private readonly reasonForNone: string,
  ) {}

  async run(planned: AsyncIterable<PlannedDerivation<T>>): Promise<DeriveResults> {
    this.job.partial(() => this.results);
    let batch: PendingTile<T>[] = [];
    for await (const one of planned) {
      this.job.signal.throwIfAborted();
      if ('obsolete' in one) {
        const former = await this.context.finder.get(deriveTileId(one.obsolete));
        if (former) this.obsolete.push(former);
        continue;
      }
      this.counts.total++;
      if ('skipped' in one) {
        this.skip(one.skipped);
        continue;
      }
      const id = deriveTileId(one);
      const former = await this.context.finder.get(id);
      if (former && isCurrent(former, one)) this.keep();
      else batch.push({ id, derivation: one, former });
      if (batch.length < MAX_BATCH_TILES) continue;
      await this.make(batch);
      batch = [];
    }
    await this.make(batch);
    const more = this.warned - MAX_WARNED_TILES;
    if (more > 0)
      this.job.log(
        'warning',
        `${plural(more, 'more tile')} with warnings, which the property "warnings" of their Items states`,
      );
    return this.results;
  }

  private async make(batch: PendingTile<T>[]): Promise<void> {
    if (batch.length === 0 && this.obsolete.length === 0) return;
    const { storage, workers } = this.context;
    const write = await storage.beginDerived();
    try {
      await write.plan(batch.map(({ id, derivation }) => ({ ...derivation.facts, id })));
      try {
        await mapConcurrent(batch, 2 + workers.threads, async (due) => {
          this.job.signal.throwIfAborted();
          await this.makeOne(write, due);
          if (performance.now() - this.committedAt > COMMIT_INTERVAL_MS) await this.commit(write);
        });
      } finally {
        // Finished tiles are kept even if the job was stopped.
        await this.commit(write);
      }
    } finally {
      await write.close();
    }
  }

  private async makeOne(write: DerivedWrite, { id, derivation, former }: PendingTile<T>): Promise<void> {
    const { storage, workers } = this.context;
    const { facts, inputs, around = [], history = [] } = derivation;
    const files = inputs.map((tile) => tileFiles(storage, tile));
    let staged: Promise<string> | undefined;
    const stage = () => {
      staged ??= write.stagingFolder(id);
      return staged;
    };
    let made: MadeTile | null;
    try {
      const task = await derivation.task({ ...facts, metadata: metadataOf(facts) }, files, stage);
      const read = [...inputs, ...around, ...history].map((tile) => ({ tile, groups: tile.groups }));
      made = await withPinnedTiles(storage, read, (fetched) => {
        addFetched(this.results, fetched);
        return workers.make(task, this.job.signal);
      });
    } catch (error) {
      // Without the object store no tile can be made.
      if (this.job.signal.aborted || (error instanceof TilewrightError && error.status === 503)) throw error;
      const writeError = staged && asStorageError(error, await staged);
      if (storageFull.is(writeError)) throw writeError;
      return this.fail(id, error);
    }
    if (!made) {
      // The former tile was made from other versions of the inputs.
      if (former) this.obsolete.push(former);
      this.results.examples ??= {};
      this.results.examples[this.reasonForNone] ??= inputs[0].id;
      return this.skip(this.reasonForNone);
    }
    const folder = await stage();
    for (const { name, bytes } of made.files) {
      const path = join(folder, `${name}.tif`);
      await (bytes ? writeFileSynced(path, bytes) : fsyncPath(path)).catch((error) => {
        throw asStorageError(error, path);
      });
    }
    const { files: _, used, rims, shares, warnings: makerWarnings = [], ...figures } = made;
    if (rims) this.results.rims = addRims([this.results.rims, rims]);
    const sources = [...used.map((input) => inputs[input]), ...around].flatMap((tile) => tile.warnings ?? []);
    const states = COMPOSITES.has(facts.source) || sources.some(isShareWarning);
    const { otherDates } = figures;
    const tileOnlyWarnings = [
      ...shareWarnings({ otherDates, ...(states && shares) }),
      ...makerWarnings,
      ...platformWarning(facts, [...used.map((input) => inputs[input]), ...around]),
      ...(derivation.warnings ?? []),
    ];
    this.warn(id, tileOnlyWarnings);
    this.staged.push({
      ...facts,
      id,
      version: write.version,
      ...figures,
      ...tileWarnings([
        ...tileOnlyWarnings,
        ...(derivation.jobWarnings ?? []),
        ...sources.filter((text) => !isShareWarning(text)),
      ]),
      derivedFrom: [...used.map((input) => inputs[input]), ...history].map((tile) => tile.id),
      inputsDigest: digestOfInputs([...inputs, ...around, ...history], derivation.recipe),
      createdAt: Date.now(),
    });
  }

  /**
   * Commits all staged tiles; commits run one after another. If an input was replaced since the plan, the tile is committed nevertheless:
   * its record names the version that it was made from, so the next run makes it again. A check could not prevent that an input is replaced
   * just after the commit.
   */
  private commit(write: DerivedWrite): Promise<void> {
    this.committedAt = performance.now();
    return this.commits.run(async () => {
      const tiles = this.staged.splice(0);
      const removed = await write.commit(tiles, this.obsolete.splice(0));
      this.results.tiles += tiles.length;
      if (removed > 0) this.results.removed = (this.results.removed ?? 0) + removed;
      this.counts.done += tiles.length;
      this.reportProgress();
    });
  }

  /** Logs warnings about a tile, those of the first tiles only. */
  private warn(id: string, warnings: string[]): void {
    if (warnings.length === 0) return;
    this.warned++;
    if (this.warned <= MAX_WARNED_TILES)
      for (const text of warnings) this.job.log('warning', `${id}: ${text}`);
  }

  private keep(): void {
    this.results.unchanged++;
    this.counts.skipped++;
    this.reportProgress();
  }

  private skip(reason: string): void {
    addSkipped(this.results, reason);
    this.counts.skipped++;
    this.reportProgress();
  }

  private fail(tile: string, error: unknown): void {
    addFailure(this.results, this.job, tile, error, deriveFailed);
    this.counts.failed++;
    this.reportProgress();
  }

  private reportProgress(): void {
    this.job.progress(this.counts);
  }
}

/** The last letter of the name of a platform distinguishes equal satellites, such as sentinel-2a and sentinel-2b. */
const seriesOf = (platform: string) => platform.replace(/(?<=\d)[a-z]$/, '');

function platformWarning({ platform }: DerivedTileProperties, sources: TileRecord[]): string[] {
  if (platform === null) return [];
  const named = sources.flatMap((tile) => tile.platform ?? []);
  const others = new Set(named.filter((other) => seriesOf(other) !== seriesOf(platform)));
  return others.size === 0
    ? []
    : [`it is of ${platform}, and uses dates of ${[...others].sort().join(', ')}, too`];
}

/** Returns the same id for the same parameters and inputs; the order of the inputs does not matter. */
function deriveTileId({
  facts,
  inputs,
  parameters,
}: Pick<TileDerivation, 'facts' | 'inputs' | 'parameters'>): string {
  const text = JSON.stringify([parameters, inputs.map(({ id }) => id).sort()]);
  return derivedTileId(facts, createHash('sha256').update(text).digest('hex').slice(0, 10));
}

/** Returns true if the derivation would make this tile again. */
function isCurrent(
  { model, inputsDigest }: TileRecord,
  { inputs, around = [], history = [], facts, recipe }: TileDerivation<unknown>,
): boolean {
  return (
    model?.version === facts.model?.version &&
    inputsDigest === digestOfInputs([...inputs, ...around, ...history], recipe)
  );
}

/**
 * Identifies the inputs of a tile: the first 16 hex digits of SHA-256 over a JSON array of the `[id, version]` of all inputs and of the
 * tiles around them, in the order of the task, which affects the tile too, and of the recipe if there is one.
 *
 * Versions are compared for equality only. Their order does not show which is newer: it is the order in which writers made their claims,
 * and a tile may be made from a former input after the claim on the next one. The files of a version never change and the task opens them
 * by paths that contain the version, so these are the versions that were read. A digest replaces a list because a filled tile has dozens of
 * inputs and a store millions of records. 64 bits suffice: a digest is compared only with that of the same tile's current inputs. A tile
 * that was moved into a cluster counts by the version that it was made as, so tiles made from it before the move stay current.
 */
function digestOfInputs(inputs: TileRecord[], recipe?: string): string {
  const versions = inputs.map(({ id, version, madeAs = version }) => [id, madeAs]);
  const text = JSON.stringify(recipe === undefined ? versions : [...versions, recipe]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

export function tileFiles(storage: Storage, tile: TileRecord): TileFiles {
  const { grid, geocode } = tile;
  return {
    grid,
    geocode,
    groups: tile.groups.map((group) => ({ ...group, ...storage.tileImage(tile, group.name) })),
  };
}

function metadataOf({ collection, scene, grid, geocode, source, start, platform }: DerivedTileProperties) {
  return {
    COLLECTION: collection,
    SCENE: scene,
    GRID: grid,
    GEOCODE: geocode,
    SOURCE: source,
    DATETIME: new Date(start).toISOString(),
    ...(platform && { PLATFORM: platform }),
  };
}

/** A process that derives tiles: resumable, with the results of all of them. */
interface DeriveProcess<Inputs> extends Pick<Process, 'id' | 'title' | 'description'> {
  /** JSON Schemas of the inputs beside `filter`. */
  properties: object;
  required?: string[];
  /** Why a task may make no tile. */
  reasonForNone: string;
  /** Yields the tiles to make in the cells of this run. */
  plan(
    context: TileProcessContext,
    inputs: Inputs,
    isMine: JobContext['isMine'],
  ): AsyncIterable<PlannedDerivation> | Promise<AsyncIterable<PlannedDerivation>>;
}

export function deriveProcess<Inputs>(
  context: TileProcessContext,
  { properties, required = [], reasonForNone, plan, ...about }: DeriveProcess<Inputs>,
): Process {
  return {
    ...about,
    inputs: {
      type: 'object',
      required,
      additionalProperties: false,
      properties: { filter: filterSchema, ...properties },
    },
    ...RESUMABLE_PROCESS,
    check: checkFilter,
    run: async (inputs, job) =>
      deriveTiles(context, await plan(context, inputs as Inputs, job.isMine), job, reasonForNone),
  };
}

/** JSON Schema of `DeriveResults`. */
export const DERIVE_RESULTS = objectOf(
  { ...TILE_COUNTS_SCHEMA, unchanged: COUNT },
  {
    removed: COUNT,
    bytesFetched: COUNT,
    rims: objectOf({ clear: COUNT, replaced: COUNT }),
    examples: { type: 'object', additionalProperties: TEXT },
  },
);

/**
 * Members of a process that derives tiles. A run does not repeat finished tiles, so a job can be resumed and its failures retried. Each
 * node makes the tiles of its own cells.
 */
export const RESUMABLE_PROCESS = {
  resumable: true,
  retryInputs: async (inputs: unknown, results: unknown) =>
    (results as DeriveResults).failures > 0 ? inputs : null,
  merge: (parts: unknown[]) => mergeResults(parts as DeriveResults[]),
  part: DERIVE_RESULTS,
  conclude: (results: unknown, context: Pick<JobContext, 'message'>) =>
    concludeResults(results as DeriveResults, context),
} satisfies Partial<Process>;

function mergeResults(parts: DeriveResults[]): DeriveResults {
  const removed = sumOf(parts, ({ removed = 0 }) => removed);
  const rims = addRims(parts.map((part) => part.rims));
  const examples: DeriveResults['examples'] = Object.assign({}, ...parts.map((part) => part.examples));
  return {
    ...mergeCounts(parts),
    ...(Object.keys(examples!).length > 0 && { examples }),
    unchanged: sumOf(parts, ({ unchanged }) => unchanged),
    ...(removed > 0 && { removed }),
    ...(rims && { rims }),
  };
}

function addRims(parts: (RimPixels | undefined)[]): RimPixels | undefined {
  const counted = parts.filter((part) => part !== undefined);
  if (counted.length === 0) return undefined;
  return {
    clear: sumOf(counted, ({ clear }) => clear),
    replaced: sumOf(counted, ({ replaced }) => replaced),
  };
}

/** Throws TW_WRANGLE_ALL_FAILED if tiles failed and no tile exists. */
function concludeResults(results: DeriveResults, { message }: Pick<JobContext, 'message'>): void {
  const { tiles, unchanged, failures } = results;
  message(`${tiles} made, ${unchanged} unchanged, ${failures} failed`);
  if (failures > 0 && tiles + unchanged === 0) throw noTileDerived(failures, firstReasons(results));
}

/** Threads that make tiles from tiles. They are started once and kept. */
export class DerivePool extends TaskPool<DeriveHandlers> {
  constructor(threads: number) {
    super(new URL('./worker.bundle.js', import.meta.url), threads);
  }

  /** Resolves to null if the inputs make no tile. */
  make(task: FillTileTask | CutTileTask, signal?: AbortSignal): Promise<MadeTile | null> {
    return this.run(task, { signal });
  }
}
