/** Stores trained models with their cards, and finds the base model that the inputs of a training name. */

import { messageOf } from '../errors.js';
import { type Filter, toCql2Json } from '../query/index.js';
import {
  type ModelVersionRecord,
  modelDamaged,
  modelId,
  newVersion,
  type Storage,
  storeCorrupt,
  storeLost,
  versionsOf,
} from '../storage/index.js';
import { version as softwareVersion } from '../version.js';
import type { CandidateName } from './candidates.js';
import type { TrainingCell } from './cells.js';
import type { DayPair } from './dates.js';
import { baseNotUsable } from './errors.js';
import type { TargetStatistics } from './evaluation.js';
import {
  type CardSummary,
  cardSummary,
  type ModelCard,
  type ModelCardContext,
  modelCard,
  selectionScore,
  type TrainingMode,
} from './model-card.js';
import type { QuestionErrors, TrainedCell } from './report.js';

export type StoreModelContext = Omit<
  ModelCardContext,
  'collection' | 'grid' | 'geocode' | 'version' | 'filter' | 'softwareVersion' | 'tiles' | 'createdAt'
> & { filter: Filter };

/** Members of a card that the results of a job repeat. */
const RESULT_MEMBERS = [
  'model',
  'collection',
  'grid',
  'geocode',
  'version',
  'epochs',
  'metrics',
  'baseline',
  'seconds',
] as const;
type ResultMembers = Pick<ModelCard, (typeof RESULT_MEMBERS)[number]>;

/** A model in the results of a job. */
export interface ModelResult
  extends ResultMembers,
    Partial<Pick<ModelCard, 'transfer' | 'adaptation' | 'distributed' | 'losses' | 'patches'>> {
  id: string;
  /** The candidate that serves, if the place has a history. */
  serves?: CandidateName;
  /** Id of the model whose weights it started from. */
  parent?: string;
  /** Days on which one of its places has the same image. */
  copies?: DayPair[];
  /** Number of its places that held out dates. */
  datedPlaces: number;
  /** Number of values in its validation patches. Like `losses` and `patches`, only of models that are not stored and have no card. */
  validationValues?: number;
}

export interface StoredModel {
  model: ModelResult;
  /** Statistics of the true values in its validation patches. */
  spread: TargetStatistics;
  /** Errors by question of each of its places that has a history, by a name of model and place. */
  asked: Record<string, QuestionErrors[]>;
}

function storedModel({ id }: { id: string }, card: CardSummary): StoredModel {
  const { parent, transfer, adaptation, distributed, spread, choice } = card;
  const places: Pick<CardSummary, 'copies' | 'holdOut'>[] = distributed?.places ?? [card];
  const copies = places.flatMap((place) => place.copies ?? []);
  const members = Object.fromEntries(RESULT_MEMBERS.map((name) => [name, card[name]])) as unknown;
  return {
    model: {
      id,
      ...(members as ResultMembers),
      datedPlaces: places.filter(({ holdOut }) => holdOut?.dates).length,
      ...(parent !== null && { parent }),
      ...(transfer && { transfer }),
      ...(adaptation && { adaptation }),
      ...(distributed && { distributed }),
      ...(choice && { serves: choice.serves }),
      ...(copies.length > 0 && { copies }),
    },
    spread,
    asked: Object.fromEntries(
      (distributed?.places ?? [card]).flatMap(({ geocode, questions }) =>
        questions ? [[`${id} ${geocode}`, questions]] : [],
      ),
    ),
  };
}

/**
 * The model that a job stored for a cell before it was interrupted. Undefined if there is none, or if its record has been damaged since.
 */
export async function modelStoredByJob(
  storage: Storage,
  job: string,
  model: string,
  { collection, grid, geocode }: Pick<TrainingCell, 'collection' | 'grid' | 'geocode'>,
  mode: TrainingMode,
): Promise<StoredModel | undefined> {
  const known = (await storage.models.scan(modelId(model, collection, grid, geocode)))?.record;
  // The base model of a single cell has the id of the model of that cell.
  const done =
    known &&
    versionsOf(known).find(({ card }) => {
      const summary = card as CardSummary;
      return summary.job === job && summary.mode === mode;
    });
  return done && storedModel(done, done.card as CardSummary);
}

type TrainedCellTiles = Pick<TrainingCell, 'collection' | 'grid' | 'geocode'> &
  Pick<ModelCardContext, 'tiles'>;

/**
 * The model is durable when the promise resolves. Without `isStored`, it is only described; the result then has its losses, which stored
 * models have in their cards.
 */
export async function storeModel(
  storage: Storage,
  { collection, grid, geocode, tiles }: TrainedCellTiles,
  trained: TrainedCell,
  { filter, ...context }: StoreModelContext,
  isStored = true,
): Promise<StoredModel> {
  const created = { version: newVersion(), softwareVersion, createdAt: Date.now() };
  const card = modelCard(
    { collection, grid, geocode, ...created, ...context, filter: toCql2Json(filter), tiles },
    trained,
  );
  const { model: kind, version, losses, patches } = card;
  if (!isStored) {
    const { model, ...more } = storedModel({ id: modelId(kind, collection, grid, geocode) }, card);
    return { model: { ...model, losses, patches, validationValues: more.spread.count }, ...more };
  }
  const score = selectionScore(card);
  const record = await storage.models.put(
    {
      model: kind,
      collection,
      grid,
      geocode,
      version,
      card: cardSummary(card),
      ...(score && { score }),
    },
    { ...trained.files, 'card.json': Buffer.from(JSON.stringify(card, null, 2)) },
  );
  return storedModel(record, card);
}

/** Errors of the files of one model. Others, such as those of a store that does not answer, do not show that the base is unusable. */
const MODEL_FILE_ERRORS = [modelDamaged, storeLost, storeCorrupt];

export interface BaseVersion {
  id: string;
  version: string;
}

/** Returns the version of a base, by default its newest one. Throws TW_TRAIN_BASE. */
export async function requestedBase(
  storage: Storage,
  { id, version }: Partial<BaseVersion> & { id: string },
  kind: string,
): Promise<ModelVersionRecord> {
  const record = await storage.models.get(id);
  if (!record) throw baseNotUsable(id, 'no model has this id; "tilewright models" lists the models');
  if (record.model !== kind) throw baseNotUsable(id, `it is a model ${record.model}, not ${kind}`);
  // The base of a single cell has the id of the model of that cell. Other models do not list all cells that they have learned from.
  const bases = versionsOf(record).filter(({ card }) => (card as CardSummary).mode === 'distributed');
  const base = version === undefined ? bases[0] : bases.find((one) => one.version === version);
  if (!base && version !== undefined) throw baseNotUsable(id, `its version ${version} is not on this node`);
  if (!base)
    throw baseNotUsable(id, 'it is the model of one place, not of a distributed or regional training');
  return base;
}

/** Throws TW_TRAIN_BASE if a file of the base is missing or damaged: otherwise each place would read its tiles before it fails. */
export async function verifyBaseFiles(
  { models }: Pick<Storage, 'models'>,
  base: ModelVersionRecord,
): Promise<void> {
  try {
    await models.readFile(base, 'model.json');
    await models.readFile(base, 'weights.bin');
  } catch (error) {
    if (MODEL_FILE_ERRORS.some((one) => one.is(error)))
      throw baseNotUsable.because(error, base.id, messageOf(error));
    throw error;
  }
}
