/** Models for tests: files of an untrained network, and a card as training writes it. */

import { loadEngine } from '../../src/engines/load.js';
import { type ModelRecord, newVersion, type Storage, type TileRecord } from '../../src/storage/index.js';
import type { TileScore } from '../../src/training/evaluation.js';
import { getModelSpec, type ImageScores, type ModelCard } from '../../src/training/index.js';
import { cardSummary, cardTile, selectionScore } from '../../src/training/model-card.js';
import { buildModel } from '../../src/training/models/network.js';
import { saveModel } from '../../src/training/models/weights.js';

/** Properties of a version that a test sets. */
export interface ModelChange {
  model?: string;
  seed?: number;
  mse?: number;
  /** Error on the selection patches, by which versions are chosen; null without such patches. Default: `mse`. */
  selection?: number | null;
  /** Error of the mean of the training. Default: the model's. */
  mean?: number;
  /** 95 % interval of its skill. */
  skill?: [low: number, high: number];
  parent?: string;
  transfer?: ModelCard['transfer'];
  /** Default: the place of the tiles. */
  geocode?: string;
  mode?: ModelCard['mode'];
  /** False for a model of an older version, whose held-out ground could touch that of other places. */
  isHeldOut?: boolean;
  /** Scores of images, of the model on its validation patches and on entire tiles. */
  images?: { validation: Partial<ImageScores>; tile?: TileScore; displayRange?: [number, number] };
}

/** Adds a version to the model of a tile's place; versions of one model have the same selection and validation patches. */
export async function putModel(
  storage: Storage,
  tiles: TileRecord[],
  {
    model = 'ndvi',
    seed = 1,
    mse = 0.01,
    selection = mse,
    mean = mse,
    parent,
    transfer,
    geocode = tiles[0]!.geocode,
    mode = 'partitioned',
    isHeldOut = true,
    images,
    skill,
  }: ModelChange = {},
): Promise<ModelRecord> {
  const { tf } = await loadEngine('wasm');
  const { collection, grid } = tiles[0]!;
  const place = { model, collection, grid, geocode, version: newVersion() };
  const metrics = { mse, r2: 1 - mse };
  const card: ModelCard = {
    ...place,
    mode,
    job: 'job',
    filter: null,
    data: tiles.map(cardTile),
    parent: parent ?? null,
    ...(transfer && { transfer }),
    engine: { name: 'wasm', version: '4.22.0 on oneDNN 2.6.3', why: [] },
    seed,
    epochs: 3,
    bestEpoch: 3,
    patches: { train: 40, validation: 10 },
    split: 'by date',
    ...(isHeldOut && {
      holdOut: { side: 'eastern', gap: 16, window: { column: 64, row: 16, width: 32, height: 64 } },
    }),
    // By default it is better than the mean.
    skill: { value: mean === mse ? 0.5 : 1 - mse / mean, ...(skill && { interval: skill }) },
    losses: [{ epoch: 1, train: 2 * mse, validation: mse }],
    metrics: {
      train: metrics,
      validation: { ...metrics, ...images?.validation },
      ...(images?.tile && { tile: images.tile }),
    },
    ...(images?.displayRange && { displayRange: images.displayRange }),
    spread: { count: 10, mean: 0.5, squares: 1 },
    ...(selection !== null && {
      selection: { mse: selection, mean, spread: { count: 12, mean: 0.4, squares: 1 } },
    }),
    baseline: { linear: metrics, mean: { mse: mean, r2: 1 - mean } },
    seconds: 1,
    bytesRead: 1000,
    createdAt: new Date().toISOString(),
    softwareVersion: '0.1.0',
  };
  const net = buildModel(tf, getModelSpec(model), seed);
  const files = { ...(await saveModel(tf, net)), 'card.json': Buffer.from(JSON.stringify(card)) };
  net.dispose();
  const score = selectionScore(card);
  return storage.models.put({ ...place, card: cardSummary(card), ...(score && { score }) }, files);
}
