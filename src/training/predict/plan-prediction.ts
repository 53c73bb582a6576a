/** Plans the prediction of one tile by one model. */
import type { PlannedDerivation } from '../../derive/index.js';
import { parseFilter, searchTiles } from '../../query/index.js';
import { modelId, type Storage, type TileRecord, type TileSource } from '../../storage/index.js';
import {
  type AcquisitionFiles,
  acquisitionFiles,
  areAlike,
  bandValueKinds,
  coarsestGroup,
  priorDates,
} from '../data/index.js';
import { getModelSpec, type ModelSpec } from '../models/index.js';
import type { CardSummary } from '../registry/index.js';
import type { ChosenModel } from './predict-model-choice.js';
import { modelFiles, type NeighbourContext, planHalo } from './predict-neighbours.js';
import { modelPixels } from './predict-pixel-size.js';
import type { PredictTask } from './predict-task.js';

/**
 * Yields the derivation of the predicted tile, or the reason why the tile is skipped. `neighbours`: finds what surrounds the tile; without
 * it, the tile is mapped alone. Cloud removal always maps a tile alone.
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
  // Models of older versions, whose cards have no held-out ground, read only the date itself.
  const { holdOut, distributed } = model.card as CardSummary;
  const readsPrior = isCloudRemoval && (holdOut ?? distributed?.places[0]?.holdOut) !== undefined;
  const others = readsPrior ? await priorTiles(storage, spec, tile) : [];
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
  const planned =
    neighbours && !isCloudRemoval
      ? await planHalo(neighbours, tile, { spec, group: pixelSize?.group ?? own.name, size: read, values })
      : undefined;
  const { facts } = derivation;
  yield {
    ...derivation,
    facts: planned?.isPartial ? { ...facts, model: { ...facts.model, halo: 'partial' } } : facts,
    // A new or changed date of the prior, or neighbour, replaces the tile.
    around: [...others.map((other) => other.tile), ...(planned?.tiles ?? [])],
    // The recipe distinguishes tiles of older versions, which also changed clear pixels.
    ...(isCloudRemoval && { recipe: 'fills cloud and shadow' }),
    ...(planned && {
      recipe: `with ${planned.isPartial ? 'a partial' : 'a'} halo, blended with\n${planned.models}`,
    }),
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

/** Returns other dates of the cell of a tile for the prior of cloud removal, the nearest in time first. */
async function priorTiles(
  storage: Storage,
  { inputs }: ModelSpec,
  tile: TileRecord,
): Promise<{ tile: TileRecord; date: AcquisitionFiles }[]> {
  const { collection, grid, geocode, source } = tile;
  const filter = parseFilter({ collections: [collection], geocode, source });
  const found = await storage.getTiles(searchTiles(storage.index, filter).ids);
  const near = found.filter(
    (other) => other.grid === grid && other.id !== tile.id && areAlike(inputs, tile, other),
  );
  const dates = [tile, ...near].flatMap((one) => {
    const date = acquisitionFiles(storage, inputs, one);
    return date ? [{ tile: one, date }] : [];
  });
  const tiles = dates.map((one) => one.tile);
  return priorDates(tiles, 0).map((other) => dates[other]);
}
