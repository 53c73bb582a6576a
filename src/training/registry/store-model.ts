/** Stores a trained model with its card. */
import { type Filter, toCql2Json } from '../../query/index.js';
import { modelId, newVersion, type Storage, versionsOf } from '../../storage/index.js';
import { version as softwareVersion } from '../../version.js';
import type { TrainingCell } from '../data/training-cells.js';
import type { TargetStatistics } from '../evaluation/metrics.js';
import type { TrainResults } from '../jobs/train-results.js';
import type { TrainedCell } from '../workers/training-messages.js';
import {
  type CardSummary,
  cardSummary,
  type ModelCardContext,
  modelCard,
  validationScore,
} from './model-card.js';

export type StoreModelContext = Pick<
  ModelCardContext,
  | 'model'
  | 'mode'
  | 'engine'
  | 'seed'
  | 'job'
  | 'distributed'
  | 'pixelSize'
  | 'values'
  | 'parent'
  | 'transfer'
> & {
  filter: Filter;
};

/** A model as the results of a job describe it. */
export interface StoredModel {
  model: TrainResults['models'][number];
  /** Of the true values in its validation patches. */
  spread: TargetStatistics;
}

function storedModel({ id }: { id: string }, card: CardSummary): StoredModel {
  const { model, collection, grid, geocode, version, epochs, metrics, baseline, seconds } = card;
  const { parent, transfer, distributed, spread } = card;
  return {
    model: {
      ...{ id, model, collection, grid, geocode, version, epochs, metrics, baseline, seconds },
      ...(parent !== null && { parent }),
      ...(transfer && { transfer }),
      ...(distributed && { distributed }),
    },
    spread,
  };
}

/** What a job had stored of a place before it was cut off; where the record is damaged since, nothing. */
export async function modelStoredByJob(
  storage: Storage,
  job: string,
  model: string,
  { collection, grid, geocode }: Pick<TrainingCell, 'collection' | 'grid' | 'geocode'>,
): Promise<StoredModel | undefined> {
  const known = (await storage.models.scan(modelId(model, collection, grid, geocode)))?.record;
  const done = known && versionsOf(known).find(({ card }) => (card as CardSummary).job === job);
  if (!done) return undefined;
  return storedModel(done, done.card as CardSummary);
}

type TrainedCellTiles = Pick<TrainingCell, 'collection' | 'grid' | 'geocode'> &
  Pick<ModelCardContext, 'tiles'>;

/** Durable when it resolves. */
export async function storeModel(
  storage: Storage,
  site: TrainedCellTiles,
  trained: TrainedCell,
  about: StoreModelContext,
): Promise<StoredModel> {
  const { place, card } = cardOf(site, trained, about);
  const record = await storage.models.put(
    { ...place, card: cardSummary(card), score: validationScore(card) },
    { ...trained.files, 'card.json': Buffer.from(JSON.stringify(card, null, 2)) },
  );
  return storedModel(record, card);
}

/** Describes a model that is not stored. The results have its losses, which stored models have in their cards. */
export function describeUnstoredModel(
  site: TrainedCellTiles,
  trained: TrainedCell,
  about: StoreModelContext,
): StoredModel {
  const { place, card } = cardOf(site, trained, about);
  const { collection, grid, geocode } = place;
  const { model, spread } = storedModel({ id: modelId(place.model, collection, grid, geocode) }, card);
  const { losses, patches } = card;
  return { model: { ...model, losses, patches, validationValues: spread.count }, spread };
}

function cardOf(
  { collection, grid, geocode, tiles }: TrainedCellTiles,
  trained: TrainedCell,
  { model, filter, ...about }: StoreModelContext,
) {
  const place = { model, collection, grid, geocode, version: newVersion() };
  const created = { softwareVersion, createdAt: Date.now() };
  return {
    place,
    card: modelCard({ ...place, ...about, ...created, filter: toCql2Json(filter), tiles }, trained),
  };
}
