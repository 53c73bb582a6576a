/** What a training job answers, and what it says of places without a model. */
import type { GridName } from '../geocode/index.js';
import type { Baselines } from './baselines.js';
import type { Distributed } from './distributed/report.js';
import type { TrainingMode } from './inputs.js';
import type { Metrics } from './metrics.js';

export interface TrainResults {
  /** Name of the engine. */
  engine: string;
  mode: TrainingMode;
  models: {
    id: string;
    collection: string;
    grid: GridName;
    geocode: string;
    model: string;
    version: string;
    epochs: number;
    metrics: { train: Metrics; validation: Metrics };
    baseline: Baselines;
    seconds: number;
    parent?: string;
    /** Of one model for many places. */
    distributed?: Distributed;
  }[];
  /** Places without a model, because their data are too little or unfit. */
  skipped: { geocode: string; reason: string }[];
  /** Places whose data could not be read, or whose training failed. */
  failed: { geocode: string; code: string; message: string }[];
  /** All validation patches taken as one set; null without models. */
  pooled: { model: Metrics; linear: Metrics; mean: Metrics } | null;
  /** Bytes of tiles that had to be fetched, where there were some. */
  bytesFetched?: number;
  seconds: number;
}

const NAMED_REASONS = 3;

/**
 * Places without a model by the reason, the most frequent first: "12 places, such as u26xe: 9 usable patches, at least 40 are
 * needed". Reasons that differ in their numbers alone are one, and so are failures of one code.
 */
export function reasonsOf({ skipped, failed }: Pick<TrainResults, 'skipped' | 'failed'>): string[] {
  const reasons = new Map<string, { reason: string; geocode: string; count: number }>();
  const add = (key: string, geocode: string, reason: string) => {
    const known = reasons.get(key);
    if (known) known.count++;
    else reasons.set(key, { reason, geocode, count: 1 });
  };
  for (const { geocode, code, message } of failed) add(code, geocode, `${message} [${code}]`);
  for (const { geocode, reason } of skipped) add(reason.replace(/\d+/g, '0'), geocode, reason);
  const all = [...reasons.values()].sort((a, b) => b.count - a.count);
  const named = all
    .slice(0, NAMED_REASONS)
    .map(({ reason, geocode, count }) =>
      count === 1 ? `${geocode}: ${reason}` : `${count} places, such as ${geocode}: ${reason}`,
    );
  const others = all.slice(NAMED_REASONS).reduce((sum, { count }) => sum + count, 0);
  return others > 0 ? [...named, others === 1 ? '1 other place' : `${others} other places`] : named;
}
