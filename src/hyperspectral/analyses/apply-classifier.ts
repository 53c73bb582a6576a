/** Applies a stored classifier to the tiles that match a filter, of its own or of another collection. */
import {
  type DeriveResults,
  derivedProperties,
  type PlannedDerivation,
  selectedTiles,
} from '../../derive/index.js';
import type { JobContext } from '../../jobs/index.js';
import { and, type Filter, references } from '../../query/index.js';
import type { ModelVersionRecord, TileRecord } from '../../storage/index.js';
import type { AnalysisContext } from '../analysis.js';
import { classBandName } from '../classification/map-fit.js';
import { type ClassifierCard, inputBands } from '../classification/stored-classifier.js';
import { isNet, type NetMethod, netMethod } from '../cnn/net.js';
import { deriveMaps, type FittedMap, type MapMethod, mapDerivation } from '../map-analysis.js';
import { parseNetwork } from '../methods/dense-network.js';
import { layersMethod, type PixelMethod } from '../methods/methods.js';
import type { MapTask } from '../output-tile.js';
import type { TileSpectrum } from '../tile-spectrum.js';

/** Makes tiles of the source `predicted`. Throws TW_ANALYSIS_CLASSIFIER, TW_STORAGE_MODEL_DAMAGED and TW_TRAIN_NO_ENGINE. */
export async function applyClassifier(
  context: AnalysisContext,
  model: ModelVersionRecord,
  filter: Filter,
  job: JobContext,
  engine?: string,
): Promise<DeriveResults> {
  const { classes } = model.card as ClassifierCard;
  const map = {
    method: await storedMethod(context, model),
    bands: classes.map(({ code, name }) => classBandName(code, name)),
    classes: {
      best: 'most' as const,
      codes: classes.map(({ code }) => code),
      names: classes.map(({ name }) => name),
    },
  };
  const tiles = applicableTiles(model, filter);
  return deriveMaps(context, map, (map) => planMaps(context, model, map, tiles, job), job, engine);
}

/** The filter for the tiles of the sources of a classifier, unless it names others. */
export function applicableTiles({ card }: ModelVersionRecord, filter: Filter): Filter {
  if (references(filter, 'source')) return filter;
  return and([filter, { op: 'in', property: 'source', values: (card as ClassifierCard).sources }]);
}

/** The spectrum of a tile, or the reason why a classifier does not apply to it. */
export function applicableSpectrum(tile: TileRecord, card: ClassifierCard): TileSpectrum | string {
  const { sources } = card;
  if (sources.includes(tile.source)) return inputBands(tile, card);
  return `their source is ${tile.source}, and the model was trained on ${sources.join(', ')}`;
}

/** Reads a stored classifier. Throws TW_ANALYSIS_CLASSIFIER and TW_STORAGE_MODEL_DAMAGED. */
export async function storedMethod(
  { storage }: AnalysisContext,
  model: ModelVersionRecord,
): Promise<PixelMethod | NetMethod> {
  const { classifier, sizes, classes } = model.card as ClassifierCard;
  const weights = await storage.models.readFile(model, 'weights.bin');
  return isNet(classifier)
    ? netMethod(classifier, classes.length, {
        'model.json': await storage.models.readFile(model, 'model.json'),
        'weights.bin': weights,
      })
    : layersMethod(parseNetwork(model.id, weights, sizes));
}

async function* planMaps<Method extends MapMethod>(
  context: AnalysisContext,
  model: ModelVersionRecord,
  map: FittedMap<Method>,
  filter: Filter,
  job: JobContext,
): AsyncGenerator<PlannedDerivation<MapTask<Method>>> {
  const { id, version } = model;
  const card = model.card as ClassifierCard;
  const spectrumOf = (tile: TileRecord) => {
    const found = inputBands(tile, card);
    return typeof found === 'string' ? undefined : found;
  };
  for await (const tile of selectedTiles(context.storage, filter, job.isMine)) {
    const spectrum = applicableSpectrum(tile, card);
    if (typeof spectrum === 'string') {
      yield { skipped: spectrum };
      continue;
    }
    yield mapDerivation(context, tile, spectrum, map, {
      facts: { ...derivedProperties(tile, 'predicted'), model: { id, version } },
      parameters: { model: id },
      metadata: { MODEL: `${id} ${version}` },
      checksScale: true,
      spectrumOf,
    });
  }
}
