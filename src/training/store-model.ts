/** Stores a trained model with its card. */
import { type Filter, toCql2Json } from '../query/index.js';
import { newVersion, type Storage } from '../storage/index.js';
import { version as softwareVersion } from '../version.js';
import { type CardContext, type CardSummary, modelCard, scoreOf, summaryOf } from './card.js';
import type { Place } from './places.js';
import type { TrainResults } from './results.js';
import type { TrainedPlace } from './worker-messages.js';

export type TrainedAbout = Pick<CardContext, 'model' | 'mode' | 'engine' | 'seed' | 'job' | 'distributed'> & {
  filter: Filter;
};

/** What the results say of a model. */
export function trainedModel({ id }: { id: string }, card: CardSummary): TrainResults['models'][number] {
  const { model, collection, grid, geocode, version, epochs, metrics, baseline, seconds, distributed } = card;
  return {
    ...{ id, model, collection, grid, geocode, version, epochs, metrics, baseline, seconds },
    ...(distributed && { distributed }),
  };
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
