import { WorkerPool } from '../async/index.js';
import type { MadeTile } from '../derive/index.js';
import type { AnalysisResult, AnalysisTask, MapTask, SumsTask } from './analysis-tasks.js';
import type { Patches, PatchesTask } from './convolutional-networks/labelled-patches.js';
import type { GradientSums, GradientTask } from './dense-networks/gradient.js';
import type { Spectra, SpectraTask } from './dense-networks/labelled-spectra.js';
import type { ScoreSums, ScoreTask } from './dense-networks/score-pixels.js';
import type { LabelSums, LabelSumsTask } from './labels/labelled-pixels.js';
import type { NearestTask } from './passes/nearest-centres.js';
import type { Extreme, ExtremesTask } from './passes/tile-extremes.js';
import type { DrawTask } from './passes/weighted-draw.js';
import type { WholeSums } from './reproducible-sums/band-statistics.js';
import type { WholeClassSums } from './reproducible-sums/class-sums.js';
import type { Components, ComponentsTask } from './transforms/pca-mnf.js';
import type { Whitening, WhiteningTask } from './transforms/whitening.js';

/** Threads that read spectra of tiles; started once and kept. */
export class AnalysisWorkers {
  private readonly pool: WorkerPool<AnalysisTask, AnalysisResult>;

  constructor(threads: number) {
    this.pool = new WorkerPool(new URL('./analysis-worker.js', import.meta.url), threads);
  }

  get threads(): number {
    return this.pool.size;
  }

  /** One for each of `of`. */
  sums(task: SumsTask, signal?: AbortSignal): Promise<WholeSums[]> {
    return this.pool.run(task, { signal }) as Promise<WholeSums[]>;
  }

  components(task: ComponentsTask, signal?: AbortSignal): Promise<Components> {
    return this.pool.run(task, { signal }) as Promise<Components>;
  }

  whitening(task: WhiteningTask, signal?: AbortSignal): Promise<Whitening> {
    return this.pool.run(task, { signal }) as Promise<Whitening>;
  }

  extremes(task: ExtremesTask, signal?: AbortSignal): Promise<(Extreme | undefined)[]> {
    return this.pool.run(task, { signal }) as Promise<(Extreme | undefined)[]>;
  }

  async draw(task: DrawTask, signal?: AbortSignal): Promise<Extreme | undefined> {
    return ((await this.pool.run(task, { signal })) as Extreme | null) ?? undefined;
  }

  nearest(task: NearestTask, signal?: AbortSignal): Promise<WholeClassSums> {
    return this.pool.run(task, { signal }) as Promise<WholeClassSums>;
  }

  labelSums(task: LabelSumsTask, signal?: AbortSignal): Promise<LabelSums[]> {
    return this.pool.run(task, { signal }) as Promise<LabelSums[]>;
  }

  spectra(task: SpectraTask, signal?: AbortSignal): Promise<Spectra[][]> {
    return this.pool.run(task, { signal }) as Promise<Spectra[][]>;
  }

  gradient(task: GradientTask, signal?: AbortSignal): Promise<GradientSums> {
    return this.pool.run(task, { signal }) as Promise<GradientSums>;
  }

  score(task: ScoreTask, signal?: AbortSignal): Promise<ScoreSums> {
    return this.pool.run(task, { signal }) as Promise<ScoreSums>;
  }

  patches(task: PatchesTask, signal?: AbortSignal): Promise<Patches> {
    return this.pool.run(task, { signal }) as Promise<Patches>;
  }

  /** Null if no pixel of the tile is clear and holds data in every band. */
  make(task: MapTask, signal?: AbortSignal): Promise<MadeTile | null> {
    return this.pool.run(task, { signal }) as Promise<MadeTile | null>;
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}
