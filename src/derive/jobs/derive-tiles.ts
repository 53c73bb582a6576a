/** Makes tiles of tiles as a job: skips what is there, writes in batches, keeps what is done when it is stopped. */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { mapConcurrent, SerialQueue } from '../../async/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import type { JobContext, Process } from '../../jobs/index.js';
import { COUNT, listOf, objectOf, TEXT } from '../../json-schema.js';
import type { TileFinder } from '../../query/index.js';
import {
  asStorageError,
  type DerivedWrite,
  derivedTileId,
  fsyncPath,
  type ObsoleteTile,
  type PinnedTile,
  pinTiles,
  type Storage,
  storageFull,
  type TileRecord,
  writeFileSynced,
} from '../../storage/index.js';
import type { DerivePool } from '../derive-pool.js';
import type { CutTileTask, FillTileTask, MadeTile, NewTile, TileFiles } from '../derive-tasks.js';
import { deriveFailed, noTileDerived } from '../errors.js';

/** What makes tiles, several at once. */
export interface TileMaker<T> {
  readonly threads: number;
  /** Null where there is nothing to make. */
  make(task: T, signal: AbortSignal): Promise<MadeTile | null>;
}

export interface DeriveContext<T> {
  storage: Storage;
  /** Where tiles of other cells are found. */
  finder: TileFinder;
  workers: TileMaker<T>;
}

export type TileProcessContext = DeriveContext<FillTileTask | CutTileTask> & { workers: DerivePool };

export interface DeriveResults {
  /** Tiles made. */
  tiles: number;
  /** Tiles that were there already, made of the same versions of the same inputs. */
  unchanged: number;
  /** Former tiles whose inputs now hold nothing that a tile could be made of, if there were any. */
  removed?: number;
  /** Inputs that made no tile, by the reason. */
  skipped: Record<string, number>;
  /** The first of those that failed. */
  failed: { tile: string; code: string; message: string }[];
  failures: number;
  /** Bytes of files that had to be fetched, where there were some. */
  bytesFetched?: number;
}

/** What a new tile is before its pixels are known. */
export type DerivedTileProperties = Pick<
  TileRecord,
  'collection' | 'scene' | 'grid' | 'geocode' | 'source' | 'start' | 'end' | 'platform' | 'model'
>;

/** A tile to make. */
export interface TileDerivation<T = FillTileTask | CutTileTask> {
  facts: DerivedTileProperties;
  /** Tiles that it may take pixels from, in the order of their numbers. */
  inputs: TileRecord[];
  /** Tiles around the cell that are read beside them. They do not identify the tile, but another version of one replaces it. */
  around?: TileRecord[];
  /** Parameters that identify the tile beside its inputs: other parameters make another tile. */
  parameters: object;
  /** Digest of a computation that can change, such as a fitted transform: a new digest replaces the tile. */
  recipe?: string;
  /** `stage` returns the absolute path of the tile's new folder, for a maker that writes large files itself. */
  task: (tile: NewTile, inputs: TileFiles[], stage: () => Promise<string>) => T | Promise<T>;
}

/** JSON Schema of `DeriveResults`. */
export const DERIVE_RESULTS = objectOf(
  {
    tiles: COUNT,
    unchanged: COUNT,
    skipped: { type: 'object', additionalProperties: COUNT },
    failed: listOf(objectOf({ tile: TEXT, code: TEXT, message: TEXT })),
    failures: COUNT,
  },
  { removed: COUNT, bytesFetched: COUNT },
);

/**
 * Of the process of such a job: what is made is not made again, so that it may go on, or try again what failed; and the tiles of each
 * cell can be made elsewhere.
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

/** Numbers of inputs by the reason, of several runs together. */
export function mergeSkipped(parts: readonly { skipped: Record<string, number> }[]): Record<string, number> {
  const skipped: Record<string, number> = {};
  for (const part of parts)
    for (const [reason, count] of Object.entries(part.skipped))
      skipped[reason] = (skipped[reason] ?? 0) + count;
  return skipped;
}

function mergeResults(parts: DeriveResults[]): DeriveResults {
  const sum = (of: (part: DeriveResults) => number) => parts.reduce((total, part) => total + of(part), 0);
  const fetched = sum(({ bytesFetched = 0 }) => bytesFetched);
  const removed = sum(({ removed = 0 }) => removed);
  return {
    tiles: sum(({ tiles }) => tiles),
    unchanged: sum(({ unchanged }) => unchanged),
    ...(removed > 0 && { removed }),
    skipped: mergeSkipped(parts),
    failed: parts.flatMap(({ failed }) => failed).slice(0, MAX_LISTED_FAILURES),
    failures: sum(({ failures }) => failures),
    ...(fetched > 0 && { bytesFetched: fetched }),
  };
}

/** The job fails where tiles failed and none was made. */
function concludeResults(
  { tiles, unchanged, failed, failures }: DeriveResults,
  { message }: Pick<JobContext, 'message'>,
): void {
  message(`${tiles} made, ${unchanged} unchanged, ${failures} failed`);
  if (failures === 0 || tiles + unchanged > 0) return;
  throw noTileDerived(
    failures,
    failed.slice(0, MAX_LISTED_REASONS).map(({ message }) => message),
  );
}

/** A derivation; the reason why there is none; or a derivation that is obsolete, whose former tile is removed. */
export type PlannedDerivation<T = FillTileTask | CutTileTask> =
  | TileDerivation<T>
  | { skipped: string }
  | { obsolete: Pick<TileDerivation, 'facts' | 'inputs' | 'parameters'> };

/** Tiles of one durable plan, and the longest time between two commits, ms. */
const MAX_BATCH_TILES = 1000;
const COMMIT_INTERVAL_MS = 5000;
const MAX_LISTED_FAILURES = 1000;
const MAX_LISTED_REASONS = 3;

/**
 * Makes all tiles that `planned` yields, each once. A tile that was made of the same versions of the same inputs, and by the same
 * version of a model, stays as it is. A former tile is removed if its inputs no longer hold anything to make it of. A tile that fails is
 * reported and the others continue; the run ends at once if the data folder cannot be written.
 */
export function deriveTiles<T>(
  context: DeriveContext<T>,
  planned: AsyncIterable<PlannedDerivation<T>>,
  job: JobContext,
  /** What a task that makes no tile means. */
  nothing: string,
): Promise<DeriveResults> {
  return new DeriveRun(context, job, nothing).run(planned);
}

/** A tile to make, and the one that it replaces. */
interface PendingTile<T> {
  id: string;
  derivation: TileDerivation<T>;
  former: TileRecord | undefined;
}

/** One run. Invariant: what is in `ready` is staged in `write`, whole and synced, and not committed. */
class DeriveRun<T> {
  private readonly counts = { total: 0, done: 0, failed: 0, skipped: 0 };
  private readonly results: DeriveResults = {
    tiles: 0,
    unchanged: 0,
    skipped: {},
    failed: [],
    failures: 0,
  };
  private staged: TileRecord[] = [];
  /** Former tiles to remove with the next commit. */
  private obsolete: ObsoleteTile[] = [];
  private committedAt = performance.now();
  private readonly commits = new SerialQueue();

  constructor(
    private readonly context: DeriveContext<T>,
    private readonly job: JobContext,
    private readonly nothing: string,
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
        // Also where the job was stopped: what is made stays.
        await this.commit(write);
      }
    } finally {
      await write.close();
    }
  }

  private async makeOne(write: DerivedWrite, { id, derivation, former }: PendingTile<T>): Promise<void> {
    const { storage, workers } = this.context;
    const { facts, inputs, around = [] } = derivation;
    const files = inputs.map((tile) => tileFiles(storage, tile));
    let staged: Promise<string> | undefined;
    const stage = () => {
      staged ??= write.stagingFolder(id);
      return staged;
    };
    const task = await derivation.task({ ...facts, metadata: metadataOf(facts) }, files, stage);
    let made: MadeTile | null;
    let held: PinnedTile | undefined;
    try {
      held = await pinTiles(
        storage,
        [...inputs, ...around].map((tile) => ({ tile, groups: tile.groups })),
      );
      this.fetched(held.fetched);
      made = await workers.make(task, this.job.signal);
    } catch (error) {
      // Where the store is away no tile can be made.
      if (this.job.signal.aborted || (error instanceof TilewrightError && error.status === 503)) throw error;
      const ofWriting = staged && asStorageError(error, await staged);
      if (storageFull.is(ofWriting)) throw ofWriting;
      return this.fail(id, error);
    } finally {
      held?.release();
    }
    if (!made) {
      // The former tile was made of other versions of the inputs.
      if (former) this.obsolete.push(former);
      return this.skip(this.nothing);
    }
    const folder = await stage();
    for (const { record, bytes } of made.files) {
      const path = join(folder, `${record.name}.tif`);
      await (bytes ? writeFileSynced(path, bytes) : fsyncPath(path)).catch((error) => {
        throw asStorageError(error, path);
      });
    }
    const { coverage, cloudCover, footprint, used } = made;
    this.staged.push({
      ...facts,
      id,
      version: write.version,
      coverage,
      cloudCover,
      groups: made.files.map(({ record }) => record),
      footprint,
      derivedFrom: used.map((input) => inputs[input].id),
      inputsDigest: digestOfInputs([...inputs, ...around], derivation.recipe),
      createdAt: Date.now(),
    });
  }

  /**
   * One after another, each with all that is ready. An input may have been replaced since the plan. The tile is committed all the
   * same: it is what its record says, and the next run makes it again. To refuse it would lose the work, and still leave open
   * that the input is replaced a moment after the commit.
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

  private fetched(bytes: number): void {
    if (bytes > 0) this.results.bytesFetched = (this.results.bytesFetched ?? 0) + bytes;
  }

  private keep(): void {
    this.results.unchanged++;
    this.counts.skipped++;
    this.reportProgress();
  }

  private skip(reason: string): void {
    const { skipped } = this.results;
    skipped[reason] = (skipped[reason] ?? 0) + 1;
    this.counts.skipped++;
    this.reportProgress();
  }

  private fail(tile: string, error: unknown): void {
    const { code, message } =
      error instanceof TilewrightError ? error : deriveFailed.because(error, tile, messageOf(error));
    if (this.results.failures < MAX_LISTED_FAILURES) this.job.log('error', `${tile}: ${message} [${code}]`);
    this.results.failures++;
    if (this.results.failed.length < MAX_LISTED_FAILURES) this.results.failed.push({ tile, code, message });
    this.counts.failed++;
    this.reportProgress();
  }

  private reportProgress(): void {
    this.job.progress(this.counts);
  }
}

/** The same for the same parameters and inputs, whichever order these come in. */
function deriveTileId({
  facts,
  inputs,
  parameters,
}: Pick<TileDerivation, 'facts' | 'inputs' | 'parameters'>): string {
  const text = JSON.stringify([parameters, inputs.map(({ id }) => id).sort()]);
  return derivedTileId(facts, createHash('sha256').update(text).digest('hex').slice(0, 10));
}

/** Whether a tile is what this derivation would make. */
function isCurrent(
  { model, inputsDigest }: TileRecord,
  { inputs, around = [], facts, recipe }: TileDerivation<unknown>,
): boolean {
  return (
    model?.version === facts.model?.version && inputsDigest === digestOfInputs([...inputs, ...around], recipe)
  );
}

/**
 * Identifies the inputs of a tile: the first 16 hex digits of SHA-256 over a JSON array of the `[id, version]` of all inputs and of the tiles
 * around them, in the order in which the task gets them, which shapes the tile too, and of the recipe if there is one.
 *
 * Versions are compared for equality only. Their order says nothing about freshness: it is the order in which writers took their
 * claims, and a tile may be made of a former input after the claim on the next one. The files of a version never change and
 * the task opens them by paths that contain the version, so these are the versions that were read. The digest replaces a
 * list because a filled tile has dozens of inputs and a store millions of records. 64 bits suffice: a digest is compared only with that
 * of the same tile's current inputs. A tile moved into a cluster counts by the version that it was made as, so that what was
 * made of it before stays current.
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
    groups: tile.groups.map((group) => ({ ...group, path: storage.tilePath(tile, group.name) })),
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
