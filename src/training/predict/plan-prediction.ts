/** Plans the prediction of one tile by one model. */
import type { PlannedDerivation } from '../../derive/index.js';
import { modelId, type Storage, type TileRecord, type TileSource } from '../../storage/index.js';
import { acquisitionFiles, bandValueKinds, coarsestGroup } from '../data/index.js';
import { getModelSpec } from '../models/index.js';
import type { CardSummary } from '../registry/index.js';
import type { ChosenModel } from './predict-model-choice.js';
import { hasPrior, modelFiles, type NeighbourContext, planHalo } from './predict-neighbours.js';
import { modelPixels } from './predict-pixel-size.js';
import { priorTiles } from './predict-prior-dates.js';
import type { PredictTask } from './predict-task.js';

/**
 * Yields the derivation of the predicted tile, or the reason why the tile is skipped. `neighbours`: finds what surrounds the tile; without
 * it, the tile is mapped alone.
 */
export async function* planPrediction(
  storage: Storage,
  { model, use }: ChosenModel,
  tile: TileRecord,
  neighbours?: NeighbourContext,
): AsyncGenerator<PlannedDerivation<PredictTask>> {
  const spec = getModelSpec(model.model);
  const { collection, scene, grid, geocode, start, end, platform } = tile;
  const isCloudRemoval = spec.target.kind === 'clear';
  const source: TileSource = isCloudRemoval ? 'cloud-free' : 'predicted';
  const cell = { collection, scene, grid, geocode };
  const derivation = {
    facts: { ...cell, source, start, end, platform, model: { id: model.id, version: model.version } },
    inputs: [tile],
    // The tile of a model of the place replaces the one that another model had made.
    parameters: { model: use === 'own' ? model.id : modelId(model.model, collection, grid, geocode) },
  };
  // If the base was applied by its id before the place was mapped by it anyway, its tile has another id.
  if (use === 'base') yield { obsolete: { ...derivation, parameters: { model: model.id } } };
  const date = acquisitionFiles(storage, spec.inputs, tile);
  if (!date) return yield { skipped: `they lack ${spec.inputs.join(', ')}` };
  if (isCloudRemoval && !tile.cloudCover) {
    // Older versions made a tile of every date.
    yield { obsolete: derivation };
    return yield { skipped: tile.cloudCover === 0 ? 'they have no cloud' : 'their cloud was not assessed' };
  }
  const { pixelSize, values = 'reflectance' } = model.card as CardSummary;
  const found = bandValueKinds(spec.inputs, [tile]);
  if (found.some((one) => one !== values))
    return yield {
      skipped: `their values are ${found.join(' and ')}, but the model was trained on ${values}`,
    };
  // Models of older versions have no pixel size, and read a tile at the size of its bands.
  const own = coarsestGroup(spec.inputs, tile)!;
  const size = pixelSize && modelPixels(pixelSize, tile, own, tile.geocode === model.geocode);
  if (size && 'skipped' in size) return yield size;
  const read = { width: own.width, height: own.height, ...size };
  const group = pixelSize?.group ?? own.name;
  const readsPrior = hasPrior(model);
  const planned =
    neighbours && (await planHalo(neighbours, tile, { spec, group, size: read, values, readsPrior }));
  const others = readsPrior && !planned ? await priorTiles(storage, spec, tile) : [];
  const { facts } = derivation;
  // The recipe distinguishes tiles of older versions, which also changed clear pixels, or had steps between the centres of patches.
  const recipe = [
    ...(spec.target.kind === 'mean' ? ['linear between the centres of patches'] : []),
    ...(planned
      ? [`with ${planned.isPartial ? 'a partial' : 'a'} halo, blended with\n${planned.models}`]
      : isCloudRemoval
        ? ['fills cloud and shadow']
        : []),
  ];
  yield {
    ...derivation,
    facts: planned?.isPartial ? { ...facts, model: { ...facts.model, halo: 'partial' } } : facts,
    // A new or changed date of the prior, or neighbour, replaces the tile.
    around: [...others.map((other) => other.tile), ...(planned?.tiles ?? [])],
    ...(recipe.length > 0 && { recipe: recipe.join('\n') }),
    task: async (made) => ({
      tile: { ...made, metadata: { ...made.metadata, MODEL: `${model.id} ${model.version}` } },
      model: { name: model.model, ...(await modelFiles(storage, model)) },
      date,
      others: others.map((other) => other.date),
      ...(planned && { halo: planned.halo }),
      size,
      areCounts: values === 'scaled counts',
      groups: {
        ...(size && { [`${size.width}x${size.height}`]: pixelSize!.group }),
        ...Object.fromEntries(
          tile.groups
            .filter(({ role }) => role === 'data')
            .map(({ width, height, name }) => [`${width}x${height}`, name]),
        ),
      },
    }),
  };
}
