/** Chooses the model that maps a tile: that of its place, otherwise that of a similar place, otherwise that of the region. */
import { type JobContext, recordWarnings } from '../jobs/index.js';
import {
  type ModelRecord,
  type ModelVersionRecord,
  modelId,
  type Storage,
  type TileRecord,
  versionNamed,
  WORLD_CELL,
} from '../storage/index.js';
import type { CardSummary } from './model-card.js';
import type { TextureIndex } from './texture/texture-index.js';
import { availableSourceModels, type SourceModelFinder, sourceModelFinder } from './transfer.js';

/**
 * The place whose model maps a tile: its own, the most similar one of its texture cluster, or the region on which a base model was
 * trained.
 */
export type ModelUse = 'own' | 'cluster' | 'base';

export interface ChosenModel {
  model: ModelVersionRecord;
  use: ModelUse;
  /** The reason why the place has no model of its own that can be used. */
  reason?: string;
  /** Warnings about models that could not be considered. The job has logged them. */
  leftOut?: string[];
}

/** A place that is mapped by the model of another place or of a region. */
export interface Fallback {
  collection: string;
  geocode: string;
  /** Id of the model. */
  model: string;
  use: Exclude<ModelUse, 'own'>;
  reason: string;
}

interface ChoiceContext {
  storage: Storage;
  textures: TextureIndex;
  job: JobContext;
}

interface Choice {
  /** Kind of model. */
  kind: string;
  /** `latest`, `best` or the name of a version. */
  version: string;
  /** True if places without a model of their own are skipped. */
  onlyOwn: boolean;
  /** Also applies models that are surely worse than the mean of their training. */
  evenIfWorse: boolean;
}

/** Why the tiles of a place are not mapped. */
const SKIP_REASONS = {
  noModel: (kind: string) => `their places have no model ${kind}`,
  noVersion: (kind: string) => `their places have no such version of their model ${kind}`,
  worse: (kind: string) =>
    `the model ${kind} of their places is worse than the mean of its training, and no other is known to be better; --even-if-worse (evenIfWorse) applies it`,
};

/** True if a model is worse than the mean of its training on its validation patches, beyond chance. */
export function isSurelyWorse({ card }: Pick<ModelRecord, 'card'>): boolean {
  const { interval } = (card as CardSummary).skill;
  return interval !== undefined && interval[1] < 0;
}

const isSkilled = ({ card }: Pick<ModelRecord, 'card'>): boolean => (card as CardSummary).skill.value > 0;

/** True if no tile has a model because all models lack the version. `skipped`: numbers of tiles by reason. */
export function lacksVersion(kind: string, skipped: Record<string, number>): boolean {
  const { [SKIP_REASONS.noVersion(kind)]: lacking = 0, [SKIP_REASONS.noModel(kind)]: _, ...others } = skipped;
  return lacking > 0 && Object.keys(others).length === 0;
}

type Cell = Pick<TileRecord, 'collection' | 'grid' | 'geocode'>;

/** Returns a function that chooses the model of a cell, or returns the reason why the cell has none. It reads each cell once. */
export function modelChooser(
  context: ChoiceContext,
  choice: Choice,
): (cell: Cell) => Promise<ChosenModel | { skipped: string }> {
  const { kind, version, onlyOwn, evenIfWorse } = choice;
  const { storage } = context;
  const known = new Map<string, Promise<ChosenModel | { skipped: string }>>();
  let similar: Promise<SimilarModels> | undefined;

  async function choose(cell: Cell): Promise<ChosenModel | { skipped: string }> {
    const { collection, grid, geocode } = cell;
    const scanned = await storage.models.scan(modelId(kind, collection, grid, geocode));
    const own = scanned?.record && versionNamed(scanned.record, version);
    const isWorse = own !== undefined && !evenIfWorse && isSurelyWorse(own);
    if (own && !isWorse) return { model: own, use: 'own' };
    if (scanned?.error)
      return { skipped: 'the records of their models are damaged; "tilewright models" lists these' };
    // Another model would replace the tiles of the versions that the place has.
    if (scanned && !own) return { skipped: SKIP_REASONS.noVersion(kind) };
    const skipped = own ? SKIP_REASONS.worse(kind) : SKIP_REASONS.noModel(kind);
    const reason = own
      ? `its model ${kind} is worse than the mean of its training`
      : `it has no model ${kind}`;
    if (onlyOwn) return { skipped };
    // A version that was named is not one of a similar place, whose best version would be used.
    const leftOut: string[] = [];
    if (version === 'latest' || version === 'best') {
      similar ??= similarModels(context, kind);
      const { find, warnings } = await similar;
      leftOut.push(...warnings);
      const found = await find(cell);
      if ('parents' in found) return { model: found.parents[0].model, use: 'cluster', reason, leftOut };
    }
    const base = await baseOf(context, kind, version, cell, leftOut);
    return base ? { model: base, use: 'base', reason, leftOut } : { skipped };
  }

  return (cell) => {
    const key = modelId(kind, cell.collection, cell.grid, cell.geocode);
    const chosen = known.get(key) ?? choose(cell);
    known.set(key, chosen);
    return chosen;
  };
}

interface SimilarModels {
  find: SourceModelFinder;
  /** Those that the search for the models has logged. */
  warnings: string[];
}

async function similarModels(
  { storage, textures, job }: ChoiceContext,
  kind: string,
): Promise<SimilarModels> {
  const { job: recording, warnings } = recordWarnings(job);
  const sources = await availableSourceModels(storage, [kind], recording, {
    excludedModes: ['distributed'],
  });
  const models = sources.filter(({ card }) => {
    const { metrics, baseline } = card as CardSummary;
    return metrics.validation.mse < baseline.mean.mse;
  });
  // The policy `similar` draws no random number.
  return { find: sourceModelFinder(textures, models.filter(isSkilled), 'similar', 0), warnings };
}

/** Returns the base model of the smallest region that contains a cell. Logs damaged ones, and adds them to `leftOut`. */
async function baseOf(
  { storage, job }: ChoiceContext,
  kind: string,
  version: string,
  { collection, grid, geocode }: Cell,
  leftOut: string[],
): Promise<ModelVersionRecord | undefined> {
  const regions = Array.from(geocode.slice(1), (_, i) => geocode.slice(0, geocode.length - 1 - i));
  for (const region of [...regions, WORLD_CELL]) {
    const scanned = await storage.models.scan(modelId(kind, collection, grid, region));
    if (scanned?.error) {
      const text = `a model whose record is damaged is not used: ${scanned.error.message}`;
      if (!leftOut.includes(text)) job.log('warning', text);
      leftOut.push(text);
    }
    const base = scanned?.record && versionNamed(scanned.record, version);
    if (base && isBase(base) && isSkilled(base)) return base;
  }
  return undefined;
}

/** True for a model of many cells. */
export function isBase({ card }: Pick<ModelRecord, 'card'>): boolean {
  return (card as CardSummary).mode === 'distributed';
}
