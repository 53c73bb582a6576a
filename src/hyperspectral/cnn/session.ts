/** Child processes with an engine that train networks on the labelled pixels of this run and the pixels around them, or apply them. */

import type { MadeTile, TileMaker } from '../../derive/index.js';
import {
  type EngineName,
  EnginePool,
  EngineProcess,
  type Handler,
  resultOrFailure,
  type SelectedEngine,
  selectEngineCached,
} from '../../engines/index.js';
import { type TileRecord, withPinnedTiles } from '../../storage/index.js';
import { mixedEngines } from '../../training/index.js';
import { COUNT, listOf, messageCheck, objectOf, TEXT } from '../../utils/json-schema.js';
import { type AnalysedCollection, allGatherChecked, forEachTile } from '../analysis.js';
import type { Neighbour } from '../blocks.js';
import { addPanelScores, noScores, SCORE_UNIT, type ScoreSums } from '../dense-training.js';
import { netFailed } from '../errors.js';
import { FOLDS, type Folds } from '../labelled-pixels.js';
import { classesOfCodes, type Labels, openLabels, withLabels } from '../labels.js';
import type { Standardisation } from '../methods/dense-network.js';
import { PANEL_PIXELS } from '../methods/panel.js';
import type { MapTask, Tally, TallyTask } from '../output-tile.js';
import { BYTES_PER_VALUE, type Precision, sampleFractions } from '../samples.js';
import { findNeighbourSpectra, neighbourFiles } from '../tile-spectrum.js';
import { GROUP, type GroupGradient, type NetTile, type ParameterShape, type PixelGroup } from './compute.js';
import { NET_SETTINGS, type NetMethod, type NetName, type NetShape } from './net.js';

/** At most `GROUP` labelled pixels of one tile. Groups depend only on the data, not on the nodes of the tiles. */
interface PatchGroup {
  fold: number;
  /** Bits of the folds within the gap. */
  near: number;
  pixels: number;
  /** Present if the tile belongs to this run. */
  own?: PixelGroup;
}

interface NetOptions {
  name: NetName;
  precision: Precision;
  labels: Labels;
  folds: Folds;
  codes: readonly number[];
  standard: Standardisation;
  /** Labelled pixels of all runs, by code. */
  labelled: ReadonlyMap<number, number>;
}

interface Gathered {
  /** Tiles of this run, and the squares of their pixels. */
  tiles: NetTile[];
  squares: Int32Array[];
  /** The groups of all runs, in the same order on every node. */
  groups: PatchGroup[];
  /** Bytes of the spectra of all runs. */
  bytes: number;
}

/**
 * Memory limit for the spectra of a job if no two patches share one. A job with more labelled pixels uses a part of them, chosen by hash.
 */
const MAX_PATCH_BYTES = 2 ** 28;

const checkGathered = messageCheck(
  objectOf({
    engine: TEXT,
    ids: listOf(TEXT),
    pixels: listOf(listOf(COUNT)),
    bytes: COUNT,
  }),
);

/** Reads each tile twice. Throws TW_TRAIN_ENGINES if the runs have different engines. */
async function gatherPatches(
  analysed: AnalysedCollection,
  { name, precision, labels, folds, codes, standard, labelled }: NetOptions,
  engine: SelectedEngine,
): Promise<Gathered> {
  const { side } = NET_SETTINGS[name];
  const bytes = side ** 2 * BYTES_PER_VALUE[precision] * analysed.bands.length;
  const shares = sampleFractions(labelled, MAX_PATCH_BYTES / bytes);
  const classOf = classesOfCodes(codes);
  const found: { id: string; tile: NetTile; squares: Int32Array; kinds: Uint8Array }[] = [];
  const open = await openLabels(labels);
  await forEachTile(analysed, async (tile, file) => {
    const { id, grid, geocode } = tile;
    const options = { file, cell: { grid, geocode }, folds, standard, shares, side, precision };
    const patches = await withNeighbours(analysed, tile, (side - 1) / 2, (around) =>
      withLabels(analysed.context, open, tile, (labels) =>
        analysed.compute({ kind: 'patches', ...options, labels, around }),
      ),
    );
    if (!patches || patches.codes.length === 0) return;
    const { codes, folds: numbers, near, squares, ...own } = patches;
    const classes = Uint8Array.from(codes, (code) => classOf[code]);
    const kinds = numbers.map((fold, i) => fold * FOLD_COMBINATIONS + near[i]);
    found.push({ id, kinds, squares, tile: { ...own, classes } });
  });
  found.sort((a, b) => (a.id < b.id ? -1 : 1));
  const message = {
    engine: `${engine.name} ${engine.version}`,
    ids: found.map(({ id }) => id),
    pixels: found.map(({ kinds }) => PIXEL_KINDS.map((kind) => kinds.filter((one) => one === kind).length)),
    bytes: found.reduce((sum, { tile }) => sum + tile.spectra.byteLength, 0),
  };
  const messages = await allGatherChecked(analysed.job, message, checkGathered);
  const engines = new Set(messages.map((one) => one.engine));
  if (engines.size > 1) throw mixedEngines([...engines].join(', '));
  const own = new Map(found.map(({ id, kinds }, tile) => [id, { tile, kinds }]));
  const all = messages
    .flatMap(({ ids, pixels }) => ids.map((id, i) => ({ id, pixels: pixels[i] })))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  return {
    tiles: found.map(({ tile }) => tile),
    squares: found.map(({ squares }) => squares),
    groups: all.flatMap(({ id, pixels }) =>
      pixels.flatMap((count, kind) => groupsOf(count, kind, own.get(id))),
    ),
    bytes: messages.reduce((sum, one) => sum + one.bytes, 0),
  };
}

/** Passes the tiles around a tile to `work`; they are pinned in the meantime. */
async function withNeighbours<T>(
  { context: { storage, finder }, spectrumOf }: AnalysedCollection,
  tile: TileRecord,
  reach: number,
  work: (around: Neighbour[]) => Promise<T>,
): Promise<T> {
  const around = await findNeighbourSpectra(finder, tile, reach, spectrumOf);
  const read = around.map(({ tile }) => ({ tile, groups: tile.groups }));
  return withPinnedTiles(storage, read, () => work(neighbourFiles(storage, around)));
}

/** Pixels of a kind have the same fold, and the same folds within the gap. */
const FOLD_COMBINATIONS = 2 ** FOLDS;
const PIXEL_KINDS = Array.from({ length: FOLDS * FOLD_COMBINATIONS }, (_, kind) => kind);

/** Adjacent pixels belong to different groups, so that a group is representative of the tile. */
function groupsOf(count: number, kind: number, own?: { tile: number; kinds: Uint8Array }): PatchGroup[] {
  const groups = Math.ceil(count / GROUP);
  const numbers = own && [...own.kinds.keys()].filter((pixel) => own.kinds[pixel] === kind);
  return Array.from({ length: groups }, (_, g) => ({
    fold: Math.floor(kind / FOLD_COMBINATIONS),
    near: kind % FOLD_COMBINATIONS,
    pixels: Math.ceil((count - g) / groups),
    ...(numbers && {
      own: { tile: own.tile, pixels: Int32Array.from(numbers.filter((_, i) => i % groups === g)) },
    }),
  }));
}

/** Requests to the processes. Results are in the order of the groups. */
export type NetHandlers = {
  /** Builds a network and keeps its tiles in memory. Returns the shapes of its weights, in their order. */
  begin: Handler<{ shape: NetShape; tiles: NetTile[] }, ParameterShape[]>;
  gradients: Handler<{ weights: Float32Array; groups: PixelGroup[] }, GroupGradient[]>;
  values: Handler<{ weights: Float32Array; groups: PixelGroup[] }, Float32Array[]>;
  cams: Handler<{ weights: Float32Array; groups: PixelGroup[] }, { pixels: number[]; sums: Float64Array }[]>;
  files: Handler<{ weights: Float32Array; standard: Standardisation }, Record<string, Uint8Array>>;
  map: Handler<MapTask<NetMethod>, MadeTile | null>;
  tally: Handler<TallyTask<NetMethod>, Tally | null>;
};

const WORKER_SCRIPT = new URL('./worker.bundle.js', import.meta.url);

class NetProcess extends EngineProcess<NetHandlers> {
  constructor(engine: EngineName) {
    super(WORKER_SCRIPT, engine);
  }
}

/** Throws TW_ANALYSIS_NET if the process ends before it answers. */
const resultOrNetFailure = <T>(answer: Promise<T>): Promise<T> => resultOrFailure(answer, netFailed);

interface NetMappers extends TileMaker<MapTask<NetMethod>> {
  tally(task: TallyTask<NetMethod>, signal: AbortSignal): Promise<Tally | null>;
}

/** Calls `work` with processes that apply networks, then ends them. If a process dies, only its tile fails. Throws TW_TRAIN_NO_ENGINE. */
export async function withMappers<T>(
  { workers: { threads } }: { workers: { threads: number } },
  engine: string | undefined,
  work: (mappers: NetMappers) => Promise<T>,
): Promise<T> {
  const { name } = await selectEngineCached(engine);
  const pool = new EnginePool<NetHandlers>(WORKER_SCRIPT, name, threads);
  try {
    return await work({
      threads,
      make: (task, signal) =>
        pool.run(signal, (child) => resultOrNetFailure(child.request('map', task, { signal }))),
      tally: (task, signal) =>
        pool.run(signal, (child) => resultOrNetFailure(child.request('tally', task, { signal }))),
    });
  } finally {
    pool.close();
  }
}

/** Importance of the bands for each class, summed over pixels in integer multiples of `SCORE_UNIT`. */
export interface CamSums {
  /** Number of correctly classified pixels of each class. */
  pixels: number[];
  /** One row per class. */
  sums: Float64Array;
}

/** Invariant: tile t of this run is tile floor(t / n) of process t % n, for n processes. Close it when done. */
export class NetSession {
  private constructor(
    readonly shape: NetShape,
    readonly precision: Precision,
    readonly engine: SelectedEngine,
    private readonly gathered: Gathered,
    readonly parameters: readonly ParameterShape[],
    private readonly standard: Standardisation,
    private readonly processes: NetProcess[],
    private readonly signal: AbortSignal,
  ) {}

  /** Throws TW_TRAIN_ENGINES, TW_TRAIN_NO_ENGINE and TW_ANALYSIS_NET. */
  static async open(analysed: AnalysedCollection, options: NetOptions): Promise<NetSession> {
    const { context, job } = analysed;
    job.message('choosing an engine');
    const engine = await selectEngineCached();
    job.message('reading the spectra around labelled pixels');
    const gathered = await gatherPatches(analysed, options, engine);
    const { name, codes, precision, standard } = options;
    const shape = { name, bands: analysed.bands.length, classes: codes.length };
    const count = Math.max(1, Math.min(context.workers.threads, gathered.tiles.length));
    const processes = Array.from({ length: count }, () => new NetProcess(engine.name));
    try {
      const [parameters] = await Promise.all(
        processes.map((process, p) => {
          const tiles = gathered.tiles.filter((_, tile) => tile % count === p);
          return resultOrNetFailure(process.request('begin', { shape, tiles }, { signal: job.signal }));
        }),
      );
      return new NetSession(shape, precision, engine, gathered, parameters, standard, processes, job.signal);
    } catch (error) {
      for (const process of processes) process.close();
      throw error;
    }
  }

  /** The groups of all runs, in the same order on every node. */
  get groups(): readonly PatchGroup[] {
    return this.gathered.groups;
  }

  /** Bytes of the spectra of all runs. */
  get bytes(): number {
    return this.gathered.bytes;
  }

  /** Returns gradients in the order of the groups, which belong to this run. */
  gradients(weights: Float32Array, groups: readonly PixelGroup[]): Promise<GroupGradient[]> {
    return this.spread(groups, (process, groups) =>
      process.request('gradients', { weights, groups }, { signal: this.signal }),
    );
  }

  /** Scores weights on the pixels of a fold in tiles of this run. `scored`: 1 for each class whose pixels are scored. */
  async scores(weights: Float32Array, fold: number, scored: Uint8Array): Promise<ScoreSums> {
    const { classes } = this.shape;
    const groups = this.localIndexes(fold);
    const values = await this.spread(groups, (process, groups) =>
      process.request('values', { weights, groups }, { signal: this.signal }),
    );
    const sums = noScores();
    const panel = new Float32Array(classes * PANEL_PIXELS);
    for (const [g, { tile, pixels }] of groups.entries()) {
      for (const [at, value] of values[g].entries())
        panel[(at % classes) * PANEL_PIXELS + Math.floor(at / classes)] = value;
      const truths = Array.from(pixels, (pixel) => this.gathered.tiles[tile].classes[pixel]);
      const squares = pixels.map((pixel) => this.gathered.squares[tile][pixel]);
      addPanelScores(sums, panel, { truths, squares, scored });
    }
    return sums;
  }

  /** Sums the importance of bands over the pixels of a fold in tiles of this run. */
  async cams(weights: Float32Array, fold: number): Promise<CamSums> {
    const { classes, bands } = this.shape;
    const total: CamSums = {
      pixels: new Array<number>(classes).fill(0),
      sums: new Float64Array(classes * bands),
    };
    const found = await this.spread(this.localIndexes(fold), (process, groups) =>
      process.request('cams', { weights, groups }, { signal: this.signal }),
    );
    for (const { pixels, sums } of found) {
      for (const [c, count] of pixels.entries()) total.pixels[c] += count;
      for (const [at, sum] of sums.entries()) total.sums[at] += Math.round(sum / SCORE_UNIT);
    }
    return total;
  }

  /** The network as a TensorFlow.js model for physical values. */
  files(weights: Float32Array): Promise<Record<string, Uint8Array>> {
    const input = { weights, standard: this.standard };
    return resultOrNetFailure(this.processes[0].request('files', input, { signal: this.signal }));
  }

  close(): void {
    for (const process of this.processes) process.close();
  }

  private localIndexes(fold: number): PixelGroup[] {
    return this.groups.flatMap((group) => (group.fold === fold && group.own ? [group.own] : []));
  }

  /** Sends groups to the processes that have their tiles. Results are in the order of the groups. */
  private async spread<T>(
    groups: readonly PixelGroup[],
    request: (process: NetProcess, groups: PixelGroup[]) => Promise<T[]>,
  ): Promise<T[]> {
    const { processes } = this;
    const results = new Array<T>(groups.length);
    await Promise.all(
      processes.map(async (process, p) => {
        const indexes = [...groups.keys()].filter((i) => groups[i].tile % processes.length === p);
        if (indexes.length === 0) return;
        const own = indexes.map((i) => {
          const { tile, pixels } = groups[i];
          return { tile: Math.floor(tile / processes.length), pixels };
        });
        for (const [i, result] of (await resultOrNetFailure(request(process, own))).entries())
          results[indexes[i]] = result;
      }),
    );
    return results;
  }
}
