/** What a training job answers. */
import type { Metrics } from './metrics.js';
import type { Baselines } from './train-model.js';

export interface TrainResults {
  /** Name of the engine. */
  engine: string;
  mode: 'partitioned';
  models: {
    collection: string;
    geocode: string;
    model: string;
    version: string;
    epochs: number;
    metrics: { train: Metrics; validation: Metrics };
    baseline: Baselines;
    seconds: number;
    parent?: string;
  }[];
  /** Places without a model: too little data, or a failure. */
  skipped: { geocode: string; reason: string }[];
  seconds: number;
}
