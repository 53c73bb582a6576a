/** Results of a training job, and a summary of the cells without a model. */
import { plural, reasonKey } from '../../utils/plural.js';
import type { Baselines, Metrics, TileScore } from '../evaluation/index.js';
import type { LeftOut } from '../freshness/index.js';
import type { ModelResult, TrainingMode } from '../registry/index.js';

export interface TrainResults {
  /** Name of the engine. */
  engine: string;
  mode: TrainingMode;
  models: ModelResult[];
  /** Cells without a model, because their data are too few or unsuitable. */
  skipped: { geocode: string; model: string; reason: string }[];
  /** Cells whose data could not be read, or whose training failed. */
  failed: { geocode: string; model: string; code: string; message: string }[];
  /**
   * Scores over all validation patches, and over all entire tiles. Null without models, and if the models are of several kinds, whose
   * errors have no common unit.
   */
  pooled: PooledScores | null;
  /** The base model of the regional mode, if the job trained it. */
  base?: ModelResult;
  /** Number of places on which the base model of the regional mode was trained. */
  basePlaces?: number;
  /** For `stale`: numbers of places by the state of their models, and the places that were not trained again. */
  checked?: { fresh: number; drifted: number; unknown: number };
  leftOut?: LeftOut[];
  /** For `stale`: estimated sum of the durations of the trainings of the chosen places, the part of the budget that is used. */
  estimatedSeconds?: number;
  /** For `stale`: the first date of the changes of the trained places, RFC 3339. */
  since?: string;
  /** Bytes of tiles that were fetched from other nodes. Absent if none were. */
  bytesFetched?: number;
}

/** Members that are missing for some cells are absent. */
export interface PooledScores extends Baselines {
  model: Metrics;
  tile?: TileScore;
}

const MAX_LISTED_REASONS = 3;

/** Label of a cell for people: with the model if there are several. */
export function cellLabel(cell: string, model: string, models: string[]): string {
  return models.length > 1 ? `${cell} (${model})` : cell;
}

/**
 * Summarises the cells without a model by reason, the most frequent first: "12 places (such as u26xe): 9 usable patches, at least 40 are
 * needed". Reasons that differ only in their numbers are one reason, and so are failures of one code. With several `models`, each has its
 * own reasons: "u26xe (ndmi): no date holds swir16". `verb` says what the cells did for the reason.
 */
export function summariseReasons(
  { skipped, failed }: Pick<TrainResults, 'skipped' | 'failed'>,
  models: string[],
  verb?: string,
): string[] {
  const reasons = new Map<string, { reason: string; cell: string; count: number }>();
  const add = ({ geocode, model }: { geocode: string; model: string }, kind: string, reason: string) => {
    const key = `${model} ${kind}`;
    const known = reasons.get(key);
    if (known) known.count++;
    else reasons.set(key, { reason, cell: cellLabel(geocode, model, models), count: 1 });
  };
  for (const one of failed) add(one, one.code, `${one.message} [${one.code}]`);
  for (const one of skipped) add(one, reasonKey(one.reason), one.reason);
  const all = [...reasons.values()].sort((a, b) => b.count - a.count);
  const named = all.slice(0, MAX_LISTED_REASONS).map(({ reason, cell, count }) => {
    const cells = count === 1 ? cell : `${count} places (such as ${cell})`;
    return `${verb ? `${cells} ${verb}` : cells}: ${reason}`;
  });
  const others = all.slice(MAX_LISTED_REASONS).reduce((sum, { count }) => sum + count, 0);
  const one = models.length > 1 ? 'model' : 'place';
  return others > 0 ? [...named, plural(others, `other ${one}`)] : named;
}
