/** Stores a trained model with its card. */
import { type Filter, toCql2Json } from '../query/index.js';
import { modelId, newVersion, type Storage, versionsOf } from '../storage/index.js';
import { version as softwareVersion } from '../version.js';
import { type CardContext, type CardSummary, modelCard, scoreOf, summaryOf } from './card.js';
import type { Spread } from './metrics.js';
import type { Place } from './places.js';
import type { TrainResults } from './results.js';
import type { TrainedPlace } from './worker-messages.js';

export type TrainedAbout = Pick<CardContext, 'model' | 'mode' | 'engine' | 'seed' | 'job' | 'distributed'> & {
  filter: Filter;
};

/** What the results say of a model. */
function trainedModel({ id }: { id: string }, card: CardSummary): TrainResults['models'][number] {
  const { model, collection, grid, geocode, version, epochs, metrics, baseline, seconds, distributed } = card;
  return {
    ...{ id, model, collection, grid, geocode, version, epochs, metrics, baseline, seconds },
    ...(distributed && { distributed }),
  };
}

/** What a job had stored of a place before it was cut off. */
export async function storedBy(
  storage: Storage,
  job: string,
  model: string,
  { collection, grid, geocode }: Pick<Place, 'collection' | 'grid' | 'geocode'>,
): Promise<{ model: TrainResults['models'][number]; spread: Spread } | undefined> {
  const known = await storage.getModel(modelId(model, collection, grid, geocode));
  const done = known && versionsOf(known).find(({ card }) => (card as CardSummary).job === job);
  if (!done) return undefined;
  const card = done.card as CardSummary;
  return { model: trainedModel(done, card), spread: card.spread };
}

/** Durable when it resolves. */
export async function storeModel(
  storage: Storage,
  {
    collection,
    grid,
    geocode,
    tiles,
  }: Pick<Place, 'collection' | 'grid' | 'geocode'> & Pick<CardContext, 'tiles'>,
  trained: TrainedPlace,
  { model, filter, ...about }: TrainedAbout,
): Promise<TrainResults['models'][number]> {
  const place = { model, collection, grid, geocode, version: newVersion() };
  const created = { softwareVersion, createdAt: Date.now() };
  const card = modelCard({ ...place, ...about, ...created, filter: toCql2Json(filter), tiles }, trained);
  const record = await storage.putModel(
    { ...place, card: summaryOf(card), score: scoreOf(card) },
    { ...trained.files, 'card.json': Buffer.from(JSON.stringify(card, null, 2)) },
  );
  return trainedModel(record, card);
}
