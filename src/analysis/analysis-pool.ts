import { WorkerPool } from '../async/index.js';
import type { MadeTile } from '../derive/index.js';
import type { AnalysisResult, AnalysisTask, MapTask, SumsTask } from './analysis-tasks.js';
import type { LabelledPatches, PatchesTask } from './convolutional-networks/labelled-patches.js';
import type { GradientSums, GradientTask } from './dense-networks/gradient.js';
import type { LabelledSpectra, SpectraTask } from './dense-networks/labelled-spectra.js';
import type { ScoreSums, ScoreTask } from './dense-networks/score-pixels.js';
import type { LabelSums, LabelSumsTask } from './labels/labelled-pixels.js';
import type { NearestTask } from './passes/nearest-centres.js';
import type { Extreme, ExtremesTask } from './passes/tile-extremes.js';
import type { DrawTask } from './passes/weighted-draw.js';
import type { FixedPointSums } from './reproducible-sums/band-statistics.js';
import type { FixedPointClassSums } from './reproducible-sums/class-sums.js';
import type { Components, ComponentsTask } from './transforms/pca-mnf.js';
import type { Whitening, WhiteningTask } from './transforms/whitening.js';

/** Threads that read spectra of tiles; started once and kept. */
export class AnalysisPool {
  private readonly pool: WorkerPool<AnalysisTask, AnalysisResult>;

  constructor(threads: number) {
    this.pool = new WorkerPool(new URL('./analysis-worker.js', import.meta.url), threads);
  }

  get threads(): number {
    return this.pool.size;
  }

  /** One for each of `of`. */
  sums(task: SumsTask, signal?: AbortSignal): Promise<FixedPointSums[]> {
    return this.pool.run(task, { signal }) as Promise<FixedPointSums[]>;
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

  nearest(task: NearestTask, signal?: AbortSignal): Promise<FixedPointClassSums> {
    return this.pool.run(task, { signal }) as Promise<FixedPointClassSums>;
  }

  labelSums(task: LabelSumsTask, signal?: AbortSignal): Promise<LabelSums[]> {
    return this.pool.run(task, { signal }) as Promise<LabelSums[]>;
  }

  spectra(task: SpectraTask, signal?: AbortSignal): Promise<LabelledSpectra[][]> {
    return this.pool.run(task, { signal }) as Promise<LabelledSpectra[][]>;
  }

  gradient(task: GradientTask, signal?: AbortSignal): Promise<GradientSums> {
    return this.pool.run(task, { signal }) as Promise<GradientSums>;
  }

  score(task: ScoreTask, signal?: AbortSignal): Promise<ScoreSums> {
    return this.pool.run(task, { signal }) as Promise<ScoreSums>;
  }

  patches(task: PatchesTask, signal?: AbortSignal): Promise<LabelledPatches> {
    return this.pool.run(task, { signal }) as Promise<LabelledPatches>;
  }

  /** Null if no pixel of the tile is clear and holds data in every band. */
  make(task: MapTask, signal?: AbortSignal): Promise<MadeTile | null> {
    return this.pool.run(task, { signal }) as Promise<MadeTile | null>;
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}
