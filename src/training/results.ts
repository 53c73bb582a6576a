/** What a training job answers. */
import type { Metrics } from './metrics.js';
import type { Baselines } from './train-model.js';

export interface TrainResults {
  /** Name of the engine. */
  engine: string;
  mode: 'partitioned';
  models: {
    id: string;
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
  /** All validation patches taken as one set; null without models. */
  pooled: { model: Metrics; linear: Metrics; mean: Metrics } | null;
  seconds: number;
}
