/** What a training job answers, and what it says of places without a model. */
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
  /** Places without a model, because their data are too little or unfit. */
  skipped: { geocode: string; reason: string }[];
  /** Places whose data could not be read, or whose training failed. */
  failed: { geocode: string; code: string; message: string }[];
  /** All validation patches taken as one set; null without models. */
  pooled: { model: Metrics; linear: Metrics; mean: Metrics } | null;
  seconds: number;
}

const NAMED_REASONS = 3;

/** Places without a model by the reason, the most frequent first: "12 places: too few dates". Of one code, one message stands for all. */
export function reasonsOf({ skipped, failed }: Pick<TrainResults, 'skipped' | 'failed'>): string[] {
  const places = new Map<string, { reason: string; count: number }>();
  const add = (key: string, reason: string) => {
    const known = places.get(key);
    if (known) known.count++;
    else places.set(key, { reason, count: 1 });
  };
  for (const { code, message } of failed) add(code, `${message} [${code}]`);
  for (const { reason } of skipped) add(reason, reason);
  const all = [...places.values()].sort((a, b) => b.count - a.count);
  const named = all
    .slice(0, NAMED_REASONS)
    .map(({ reason, count }) => `${count} ${count === 1 ? 'place' : 'places'}: ${reason}`);
  const others = all.length - named.length;
  return others > 0 ? [...named, `others for ${others} more reasons`] : named;
}
