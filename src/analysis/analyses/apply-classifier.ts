/** Applies a stored classifier to the tiles that a filter picks, of its own or of another collection. */

import {
  type DeriveResults,
  deriveTiles,
  type PlannedDerivation,
  selectedTiles,
} from '../../derive/index.js';
import type { JobContext } from '../../jobs/index.js';
import { and, type Filter, references } from '../../query/index.js';
import type { ModelVersionRecord, TileRecord, TileSource } from '../../storage/index.js';
import type { MapTask } from '../analysis-tasks.js';
import { classBandName } from '../classification/class-map.js';
import type { ClassifierCard } from '../classifier-registry/classifier-card.js';
import { inputBands } from '../classifier-registry/input-bands.js';
import { parseNetwork } from '../classifier-registry/saved-classifier.js';
import { type NetMethod, netMethod } from '../convolutional-networks/network-method.js';
import { withMappers } from '../convolutional-networks/network-processes.js';
import { isNet } from '../convolutional-networks/network-specs.js';
import { type AnalysisContext, NO_PIXEL, spectrumFile } from '../jobs/analysis-run.js';
import { layersMethod, type PixelMethod } from '../pixel-methods/pixel-methods.js';
import { findNeighbourSpectra, neighbourFiles } from '../tile-reading/neighbour-tiles.js';
import type { TileSpectrum } from '../tile-reading/tile-spectrum.js';

/** Makes tiles of the source `predicted`. Throws TW_ANALYSIS_CLASSIFIER and TW_STORAGE_MODEL_DAMAGED. */
export async function applyClassifier(
  context: AnalysisContext,
  model: ModelVersionRecord,
  filter: Filter,
  job: JobContext,
  engine?: string,
): Promise<DeriveResults> {
  const { storage } = context;
  const card = model.card as ClassifierCard;
  const { classifier, sizes, classes, sources } = card;
  const map = {
    bands: classes.map(({ code, name }) => classBandName(code, name)),
    classes: {
      ...{ best: 'most' as const, codes: classes.map(({ code }) => code) },
      names: classes.map(({ name }) => name),
    },
  };
  const wanted = references(filter, 'source')
    ? filter
    : and([filter, { op: 'in', property: 'source', values: sources }]);
  const of = { model, spectrumOf: (tile: TileRecord) => inputBands(tile, card), sources };
  const weights = await storage.models.readFile(model, 'weights.bin');
  if (isNet(classifier)) {
    const files = {
      'model.json': await storage.models.readFile(model, 'model.json'),
      'weights.bin': weights,
    };
    const method = netMethod(classifier, classes.length, files);
    const planned = plan(context, { ...of, map: { ...map, method } }, wanted, job);
    return withMappers(context, engine, (workers) =>
      deriveTiles({ ...context, workers }, planned, job, NO_PIXEL),
    );
  }
  const method = layersMethod(parseNetwork(model.id, weights, sizes));
  return deriveTiles(context, plan(context, { ...of, map: { ...map, method } }, wanted, job), job, NO_PIXEL);
}

async function* plan<Method extends PixelMethod | NetMethod>(
  { storage, finder }: AnalysisContext,
  of: {
    model: ModelVersionRecord;
    /** The spectrum that the model reads, or why it cannot. */
    spectrumOf: (tile: TileRecord) => TileSpectrum | string;
    sources: readonly TileSource[];
    map: Pick<MapTask<Method>, 'method' | 'bands' | 'classes'>;
  },
  filter: Filter,
  job: JobContext,
): AsyncGenerator<PlannedDerivation<MapTask<Method>>> {
  const { model, spectrumOf, sources, map } = of;
  const { id, version } = model;
  for await (const tile of selectedTiles(storage, filter, job.isMine)) {
    const spectrum = sources.includes(tile.source)
      ? spectrumOf(tile)
      : `their source is ${tile.source}, and the model was trained on ${sources.join(', ')}`;
    if (typeof spectrum === 'string') {
      yield { skipped: spectrum };
      continue;
    }
    const { collection, scene, grid, geocode, start, end, platform } = tile;
    const place = { collection, scene, grid, geocode };
    const reach = map.method.kind === 'net' ? (map.method.side - 1) / 2 : 0;
    const around = await findNeighbourSpectra(finder, tile, reach, (one) => {
      const found = spectrumOf(one);
      return typeof found === 'string' ? undefined : found;
    });
    yield {
      facts: { ...place, source: 'predicted', start, end, platform, model: { id, version } },
      inputs: [tile],
      around: around.map((one) => one.tile),
      parameters: { model: id },
      task: (made) => ({
        ...{ kind: 'map', ...map, group: spectrum.group.name, checksScale: true },
        tile: { ...made, metadata: { ...made.metadata, MODEL: `${id} ${version}` } },
        file: spectrumFile(storage, tile, spectrum),
        ...(around.length > 0 && { around: neighbourFiles(storage, around) }),
      }),
    };
  }
}
