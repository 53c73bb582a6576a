/** The distributed mode: one model for all cells, trained by all nodes that have some. */

import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import type { Duplex } from 'node:stream';
import { raceAbort } from '../async/index.js';
import { type EngineName, EngineProcess, ProcessEnded, selectEngineCached } from '../engines/index.js';
import type { JobContext } from '../jobs/index.js';
import { defaultToRawSource, parseFilter, searchTiles } from '../query/index.js';
import { commonCell, type PinnedTile, pinTiles, type Storage } from '../storage/index.js';
import { plural } from '../utils/text.js';
import { version } from '../version.js';
import {
  commonPixels,
  groupTilesByCell,
  regionName,
  type TrainedPixels,
  type TrainingCell,
  trainedPixels,
  trainingFiles,
  withPrecision,
} from './cells.js';
import { datedOf, daysOf } from './dates.js';
import { describeResumePoint } from './distributed/checkpoints.js';
import type { DataParallelOptions } from './distributed/data-parallel.js';
import {
  type DataParallelResult,
  distributedReport,
  NEXT_RANK_FD,
  PREVIOUS_RANK_FD,
  pooledCellScores,
  type RankHandlers,
  type ReadCellsRequest,
  type ReadCellsResult,
  type TrainRankRequest,
} from './distributed/messages.js';
import { type PendingConnection, pipeBothWays, type Rendezvous } from './distributed/rendezvous.js';
import { mixedEngines, nodeLost, severalCollections } from './errors.js';
import { heldOutDates, isNearHeldOut } from './hold-out.js';
import { describeTraffic } from './model-card.js';
import { type StoreModelContext, storeModel } from './model-store.js';
import { getModelSpec } from './models/builtin.js';
import { inputPlanes, type ModelSpec, withHistory } from './models/spec.js';
import type { ModelFiles } from './models/weights.js';
import type { AppliedHoldOut } from './patches.js';
import type { ModelChoice } from './report.js';
import {
  DEFAULT_SEED,
  requestedModels,
  type TrainContext,
  type TrainInputs,
  validationTime,
} from './train-inputs.js';
import { addModel, emptyResults, type PartialTrainResults, summariseReasons } from './train-results.js';
import type { DatasetTask } from './train-task.js';

/** The process of this rank. Every method throws TW_TRAIN_RING if the process ends, and the errors of the process. */
export class RankProcess {
  private readonly process: EngineProcess<RankHandlers>;

  constructor(
    private readonly node: string,
    engine: EngineName,
    threads: number,
  ) {
    const script = new URL('./distributed/worker.bundle.js', import.meta.url);
    this.process = new EngineProcess(script, engine, { threads, streams: 2 });
  }

  /** Reads the cells of the node, and returns which are usable. */
  read(task: ReadCellsRequest): Promise<ReadCellsResult> {
    return this.orNodeLost(this.process.request('read', task));
  }

  /** Trains with the other ranks over `links`; undefined for a single rank. */
  train(
    training: TrainRankRequest,
    links: { previous: Duplex; next: Duplex } | undefined,
    { onBegin, onEpoch }: Pick<DataParallelOptions, 'onBegin' | 'onEpoch'>,
  ): Promise<DataParallelResult> {
    if (links) {
      pipeBothWays(links.previous, this.process.stream(PREVIOUS_RANK_FD));
      pipeBothWays(links.next, this.process.stream(NEXT_RANK_FD));
    }
    const trained = this.process.request('train', training, {
      onProgress(progress) {
        if ('begins' in progress) onBegin?.(progress.begins);
        else onEpoch?.(progress.epoch);
      },
    });
    return this.orNodeLost(trained);
  }

  /** Call it when this rank needs nothing more from the others. Resolves when all ranks are ready to leave. */
  shutdown(): Promise<void> {
    return this.orNodeLost(this.process.request('leave', undefined));
  }

  end(): void {
    this.process.close();
  }

  private async orNodeLost<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      if (!(error instanceof ProcessEnded)) throw error;
      const detail = `its training process ended (${error.message}), usually because of too little memory`;
      throw nodeLost.because(error, this.node, detail);
    }
  }
}

/** Announcement of a node before the ring is formed. */
interface RankAnnouncement {
  node: string;
  /** Address of the node, and the id of its waiting rank. Absent for a single node. */
  url?: string;
  door?: string;
  /** Versions of the engine and the program; other versions may compute other weights. */
  engine: string;
  /** Training patches. Nodes without any do not take part. */
  patches: number;
  /** Collections and grids of its cells, and the kinds of their values. */
  regions: string[];
  /** Distinct pixel sizes of the cells. */
  pixels: TrainedPixels[];
  /** Digest of the versions of all tiles that it trains on. */
  data: string;
  /** The smallest cell around its selected cells, trained or not, by collection and grid. Absent from nodes of older versions. */
  selected?: Record<string, string>;
}

/** The model of a distributed training. */
interface DistributedModel {
  results: PartialTrainResults;
  /** On the first rank, or on all ranks on request. Undefined if this node has no patches. */
  files?: ModelFiles;
  /** The cells of all ranks; empty if this node has no patches. */
  cells: { geocode: string; holdOut?: AppliedHoldOut }[];
  /** Present if the cells have histories. */
  choice?: ModelChoice;
}

export async function trainDistributed(
  context: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
): Promise<PartialTrainResults> {
  return (await trainOneModel(context, inputs, job)).results;
}

/**
 * Runs the part of this node: reads its cells in one process, agrees with the other nodes on the ranks, and trains with them. The first
 * rank stores the model; then all remove their checkpoints. Throws TW_TRAIN_RING, TW_TRAIN_ENGINES, TW_TRAIN_COLLECTIONS,
 * TW_TRAIN_DIVERGED. `isBase`: every rank returns the files of the model, and large nodes train it on some of their places.
 */
export async function trainOneModel(
  { storage, cores = availableParallelism(), memory = Infinity, rendezvous, onEpoch }: TrainContext,
  inputs: TrainInputs,
  job: JobContext,
  isBase = false,
): Promise<DistributedModel> {
  const [model] = requestedModels(inputs);
  const {
    epochs = getModelSpec(model).epochs,
    patience,
    seed = DEFAULT_SEED,
    store: isStored = true,
  } = inputs;
  const filter = defaultToRawSource(parseFilter(inputs.filter ?? {}));
  job.message('choosing an engine');
  const engine = await selectEngineCached(inputs.engine);
  job.signal.throwIfAborted();

  const results = emptyResults(engine.name, 'distributed');
  job.partial(() => results);
  const picked = await storage.getTiles((await searchTiles(storage.index, filter)).ids);
  const cells = groupTilesByCell(picked.filter(job.isMine));
  const count = (done: number) => {
    const { skipped, failed } = results;
    job.progress({ total: cells.length, done, skipped: skipped.length, failed: failed.length });
  };

  const node = storage.folder.node.id;
  const door = rendezvous?.doors.listen();
  const member = new RankProcess(node, engine.name, cores);
  const end = () => member.end();
  const pinned: PinnedTile[] = [];
  let files: ModelFiles | undefined;
  let scored: DistributedModel['cells'] = [];
  let choice: ModelChoice | undefined;
  job.signal.addEventListener('abort', end);
  try {
    job.message('reading places');
    const task = await datasetOptions(inputs, cells, job);
    const tasks = readRequests(storage, model, task, cells, results);
    const limit = isBase ? basePlaces(getModelSpec(model), tasks, memory) : Infinity;
    const isPart = tasks.length > limit;
    const waiting = isPart ? spreadOut(tasks) : tasks;
    const used: TrainingCell[] = [];
    let patches = 0;
    for (let next = waiting; next.length > 0 && used.length < limit; ) {
      const some = next.slice(0, limit - used.length);
      next = next.slice(some.length);
      // Pinned until the end, because the tiles are read again to score the model.
      const pin = await pinTiles(
        storage,
        some.flatMap(({ cell }) => cell.tiles.map((tile) => ({ tile, groups: tile.groups }))),
      );
      pinned.push(pin);
      if (pin.fetched > 0) results.bytesFetched = (results.bytesFetched ?? 0) + pin.fetched;
      const read = await readCells(member, model, some, results);
      used.push(...read.used);
      patches = read.patches;
    }
    if (isPart) job.log('info', `the base model is trained on ${used.length} of ${tasks.length} places`);
    count(0);
    for (const reason of summariseReasons(results, [model])) job.log('warning', `skipped ${reason}`);
    const announcements = await job.allGather<RankAnnouncement>({
      node,
      engine: `${engine.name} ${engine.version}, tilewright ${version}`,
      patches,
      regions: regionsOf(isPart ? tasks.map(({ cell }) => cell) : used, getModelSpec(model)),
      pixels: pixelsOf(used, getModelSpec(model)),
      data: digest(used.map(versionsOf)),
      selected: commonCells(cells),
      ...(rendezvous && door && { url: rendezvous.url, door: door.id }),
    });
    const members = announcements.filter((one) => one.patches > 0);
    assertSameEngines(members);
    const index = members.findIndex((one) => one.node === node);
    if (index >= 0) {
      job.message(`training ${model} with ${engine.name}, ${plural(members.length, 'node')}`);
      job.log(
        'info',
        `${plural(used.length, 'place')}, ${plural(patches, 'patch', 'patches')}, engine ${engine.name}`,
      );
      const next = members[(index + 1) % members.length];
      const links =
        rendezvous && door && members.length > 1
          ? await connectRing(next, rendezvous.doors, door, job.signal)
          : undefined;
      const names = members.map((one) => one.node);
      // A job that stores nothing measures a complete training, and must not use the checkpoints of other jobs.
      const own = isStored ? [] : [job.id];
      const fingerprint = digest([
        version,
        model,
        seed,
        epochs,
        patience,
        task.validationFrom,
        task.holdOut,
        task.history,
        members.map(shaping),
        ...own,
      ]);
      const checkpoint = { folder: await storage.scratch.makePersistent(fingerprint), task: fingerprint };
      const trained = await member.train(
        { index, members: names, seed, epochs, patience, checkpoint, returnsFiles: isBase },
        links,
        {
          onBegin: (beginning) => {
            if (index === 0) job.log('info', describeResumePoint(beginning));
          },
          onEpoch: ({ epoch }) => {
            onEpoch?.();
            job.progress({ share: epoch / epochs });
          },
        },
      );
      files = trained.files;
      choice = trained.choice;
      scored = trained.members.flatMap(({ places }) => places);
      if (index === 0) {
        // The base of a region also maps the selected cells that have too few data for a model.
        const selected = isBase ? announcements.map((one) => one.selected?.[collectionKey(used[0])]) : [];
        const site = commonAncestorCell(used[0], trained, selected);
        const pooled = pooledCellScores(trained);
        const about: StoreModelContext = {
          mode: 'distributed',
          model,
          filter,
          engine,
          seed,
          job: job.id,
          ...commonPixels(members.flatMap((one) => one.pixels)),
          distributed: distributedReport(trained, names, announcements.length),
        };
        const stored = await storeModel(storage, site, pooled, about, isStored);
        addModel(results, stored);
        job.log('info', describeTraffic(stored.model.distributed!));
      }
      await member.shutdown();
      await storage.scratch.remove(checkpoint.folder);
      count(used.length);
    }
  } catch (error) {
    job.signal.throwIfAborted();
    throw error;
  } finally {
    job.signal.removeEventListener('abort', end);
    door?.close();
    member.end();
    for (const pin of pinned) pin.release();
  }
  return { results, files, cells: scored, ...(choice && { choice }) };
}

type Task = ReadCellsRequest['places'][number];

/** Largest number of places of a node on which a base is trained: one process trains it, and places adapt it or share its history. */
const MAX_BASE_PLACES = 96;
/** Part of the memory for trainings that the dates and patches of these places may take. */
const BASE_MEMORY = 0.5;
/** Bands, target and masks of a pixel of a date. */
const BYTES_PER_PIXEL = 32;

/** Returns on how many places a base is trained, at least one. `memory`: that for all trainings of the node, in bytes. */
function basePlaces(spec: ModelSpec, tasks: readonly { cell: TrainingCell }[], memory: number): number {
  const { maxPatches, patchSize } = spec;
  // Leaving dates out cuts the patches again.
  const patches = 2 * maxPatches * patchSize ** 2 * inputPlanes(withHistory(spec)) * 4;
  const dates = tasks.reduce((sum, { cell }) => {
    const { width = 0, height = 0 } = trainedPixels(spec, cell).pixelSize ?? {};
    return sum + cell.tiles.length * width * height * BYTES_PER_PIXEL;
  }, 0);
  const fitting = Math.floor((BASE_MEMORY * memory) / (patches + dates / Math.max(1, tasks.length)));
  return Math.max(1, Math.min(MAX_BASE_PLACES, fitting));
}

const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/** Returns items in an order whose first ones, however many, are spread evenly over all. */
const spreadOut = <T>(items: readonly T[]): T[] =>
  items
    .map((item, i) => ({ item, at: (i * GOLDEN_RATIO) % 1 }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);

type DatasetOptions = Omit<DatasetTask, 'dates' | 'pairs'>;

/** How the nodes of a region cut patches: the same dates are left out at all places at once. */
export async function datasetOptions(
  inputs: TrainInputs,
  cells: TrainingCell[],
  job: Pick<JobContext, 'allGather'>,
): Promise<DatasetOptions> {
  const { history = 'all', holdOut } = inputs;
  const options = { validationFrom: validationTime(inputs), holdOut, history };
  const dates = heldOutDates(options);
  const own = new Set<string>();
  for (const { tiles } of cells)
    for (const date of tiles.map(datedOf)) if (!dates || !isNearHeldOut(dates, date)) own.add(daysOf(date));
  const days = [...new Set((await job.allGather([...own])).flat())].sort();
  return { ...options, days, isShared: true };
}

/** Returns the cells that have the files that a model needs. The others are added to the results. */
function readRequests(
  storage: Storage,
  model: string,
  options: DatasetOptions,
  cells: TrainingCell[],
  results: PartialTrainResults,
): { cell: TrainingCell; task: Task }[] {
  return cells.flatMap((cell) => {
    const { collection, geocode } = cell;
    const files = trainingFiles(storage, getModelSpec(model), cell);
    if ('skipped' in files) {
      results.skipped.push({ geocode, model, reason: files.skipped });
      return [];
    }
    const tiles = cell.tiles.map(({ id, version, start, end }) => ({ id, version, start, end }));
    return [{ cell, task: { id: `${collection} ${geocode}`, geocode, tiles, ...files, ...options } }];
  });
}

/** Returns the cells that can be trained on. The others are added to the results. */
async function readCells(
  member: RankProcess,
  model: string,
  tasks: { cell: TrainingCell; task: Task }[],
  results: PartialTrainResults,
): Promise<{ used: TrainingCell[]; patches: number }> {
  const named = new Map(tasks.map(({ cell, task }) => [task.id, cell]));
  const { usable, patches, skipped, failed } = await member.read({
    model,
    places: tasks.map(({ task }) => task),
  });
  const geocodeOf = (id: string) => named.get(id)!.geocode;
  results.skipped.push(
    ...skipped.map(({ id, reason }) => ({
      geocode: geocodeOf(id),
      model,
      reason: withPrecision(reason, model, named.get(id)!),
    })),
  );
  results.failed.push(...failed.map(({ id, ...error }) => ({ geocode: geocodeOf(id), model, ...error })));
  return { used: usable.map((id) => named.get(id)!), patches };
}

const regionsOf = (cells: TrainingCell[], spec: ModelSpec) => [
  ...new Set(cells.map((cell) => regionName(cell, trainedPixels(spec, cell).values!))),
];

function pixelsOf(cells: TrainingCell[], spec: ModelSpec): TrainedPixels[] {
  const pixels = cells.map((cell) => commonPixels([trainedPixels(spec, cell)]));
  return [...new Map(pixels.map((one) => [JSON.stringify(one), one])).values()];
}

const versionsOf = ({ tiles }: TrainingCell) => tiles.map(({ id, version }) => [id, version]);

/** The parts of an announcement that affect the weights. */
const shaping = ({ node, engine, data }: RankAnnouncement) => [node, engine, data];

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32);
}

function assertSameEngines(members: RankAnnouncement[]): void {
  const regions = [...new Set(members.flatMap((member) => member.regions))];
  if (regions.length > 1) throw severalCollections(regions.sort().join(', '));
  if (new Set(members.map(({ engine }) => engine)).size > 1)
    throw mixedEngines(members.map(({ node, engine }) => `${node}: ${engine}`).join(', '));
}

/** Returns the connections to the ranks before and after this one. */
async function connectRing(
  { node, url, door: to }: RankAnnouncement,
  doors: Rendezvous,
  own: PendingConnection,
  signal: AbortSignal,
) {
  const reached = doors.connect({ node, url: url! }, to!);
  try {
    const [previous, next] = await raceAbort(Promise.all([own.connection, reached]), signal);
    return { previous, next };
  } catch (error) {
    reached.then(
      (socket) => socket.destroy(),
      () => undefined,
    );
    throw error;
  }
}

const collectionKey = ({ collection, grid }: Pick<TrainingCell, 'collection' | 'grid'>) =>
  `${collection} (${grid})`;

/** Returns the smallest cell around the cells of each collection and grid. */
function commonCells(cells: TrainingCell[]): Record<string, string> {
  const found = new Map<string, string>();
  for (const cell of cells) {
    const key = collectionKey(cell);
    found.set(key, commonCell([found.get(key) ?? cell.geocode, cell.geocode]));
  }
  return Object.fromEntries(found);
}

/** Returns the smallest cell that contains all cells and the `selected` ones, with the tiles of all cells. */
function commonAncestorCell(
  { collection, grid }: TrainingCell,
  { members }: DataParallelResult,
  selected: (string | undefined)[],
) {
  const cells = members.flatMap((member) => member.places);
  const around = selected.filter((one) => one !== undefined);
  const geocode = commonCell([...cells.map((cell) => cell.geocode), ...around]);
  return { collection, grid, geocode, tiles: cells.flatMap((cell) => cell.tiles) };
}
