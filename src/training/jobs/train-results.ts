/** What a training job answers, and what it says of places without a model. */
import { plural, reasonKey } from '../../plural.js';
import type { Baselines, Metrics, TileScore } from '../evaluation/index.js';
import type { ModelResult, TrainingMode } from '../registry/index.js';

export interface TrainResults {
  /** Name of the engine. */
  engine: string;
  mode: TrainingMode;
  models: ModelResult[];
  /** Places without a model, because their data are too little or unfit. */
  skipped: { geocode: string; model: string; reason: string }[];
  /** Places whose data could not be read, or whose training failed. */
  failed: { geocode: string; model: string; code: string; message: string }[];
  /**
   * All validation patches taken as one set, and all whole tiles; null without models, and where they are of several kinds, whose errors
   * have no common unit.
   */
  pooled: PooledScores | null;
  /** Bytes of tiles that had to be fetched, where there were some. */
  bytesFetched?: number;
}

/** Those that some of the places lack are absent. */
export interface PooledScores extends Baselines {
  model: Metrics;
  tile?: TileScore;
}

const MAX_LISTED_REASONS = 3;

/** A place as people are told of it: with the model where there are several. */
export function cellLabel(place: string, model: string, models: string[]): string {
  return models.length > 1 ? `${place} (${model})` : place;
}

/**
 * Places without a model by the reason, the most frequent first: "12 places, such as u26xe: 9 usable patches, at least 40 are
 * needed". Reasons that differ in their numbers alone are one, and so are failures of one code. Of several `models`, each has reasons of
 * its own: "u26xe (ndmi): no date holds swir16".
 */
export function summariseReasons(
  { skipped, failed }: Pick<TrainResults, 'skipped' | 'failed'>,
  models: string[],
): string[] {
  const reasons = new Map<string, { reason: string; place: string; count: number }>();
  const add = ({ geocode, model }: { geocode: string; model: string }, kind: string, reason: string) => {
    const key = `${model} ${kind}`;
    const known = reasons.get(key);
    if (known) known.count++;
    else reasons.set(key, { reason, place: cellLabel(geocode, model, models), count: 1 });
  };
  for (const one of failed) add(one, one.code, `${one.message} [${one.code}]`);
  for (const one of skipped) add(one, reasonKey(one.reason), one.reason);
  const all = [...reasons.values()].sort((a, b) => b.count - a.count);
  const named = all
    .slice(0, MAX_LISTED_REASONS)
    .map(({ reason, place, count }) =>
      count === 1 ? `${place}: ${reason}` : `${count} places, such as ${place}: ${reason}`,
    );
  const others = all.slice(MAX_LISTED_REASONS).reduce((sum, { count }) => sum + count, 0);
  const one = models.length > 1 ? 'model' : 'place';
  return others > 0 ? [...named, plural(others, `other ${one}`)] : named;
}
