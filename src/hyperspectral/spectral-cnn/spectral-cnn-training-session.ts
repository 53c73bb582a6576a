/** Child processes with an engine that compute gradients and scores of a network on the labelled pixels of this run. */

import { type SelectedEngine, selectEngineCached } from '../../engines/index.js';
import { addPanelScores, noScores, SCORE_UNIT, type ScoreSums } from '../dense-network-training/index.js';
import type { AnalysedCollection } from '../jobs/index.js';
import { PANEL_PIXELS, type Standardisation } from '../pixel-methods/index.js';
import type { Precision } from '../training-samples/index.js';
import { type Gathered, gatherPatches, type NetOptions, type PatchGroup } from './spectral-cnn-patches.js';
import type { GroupGradient, ParameterShape, PixelGroup } from './spectral-cnn-runtime.js';
import type { NetShape } from './spectral-cnn-specs.js';
import { NetProcess, resultOrNetFailure } from './spectral-cnn-workers.js';

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

  /** Scores weights on the pixels of a set in tiles of this run. */
  async scores(weights: Float32Array, set: number, temperatures: readonly number[]): Promise<ScoreSums> {
    const { classes } = this.shape;
    const groups = this.localIndexes(set);
    const values = await this.spread(groups, (process, groups) =>
      process.request('values', { weights, groups }, { signal: this.signal }),
    );
    const sums = noScores(classes, temperatures.length);
    const panel = new Float32Array(classes * PANEL_PIXELS);
    for (const [g, { tile, pixels }] of groups.entries()) {
      for (const [at, value] of values[g].entries())
        panel[(at % classes) * PANEL_PIXELS + Math.floor(at / classes)] = value;
      const truths = Array.from(pixels, (pixel) => this.gathered.tiles[tile].classes[pixel]);
      addPanelScores(sums, panel, truths, temperatures);
    }
    return sums;
  }

  /** Sums the importance of bands over the pixels of a set in tiles of this run. */
  async cams(weights: Float32Array, set: number): Promise<CamSums> {
    const { classes, bands } = this.shape;
    const total: CamSums = {
      pixels: new Array<number>(classes).fill(0),
      sums: new Float64Array(classes * bands),
    };
    const found = await this.spread(this.localIndexes(set), (process, groups) =>
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

  private localIndexes(set: number): PixelGroup[] {
    return this.groups.flatMap((group) => (group.set === set && group.own ? [group.own] : []));
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
