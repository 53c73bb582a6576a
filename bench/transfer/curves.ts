/** How the validation loss of places falls, by what they start from. Selection patches choose epochs and the learning rate. */

import { toArray } from '../../src/async/index.js';
import type { Tf } from '../../src/engines/tfjs.js';
import type { Storage } from '../../src/storage/index.js';
import { readAcquisitions } from '../../src/training/acquisitions.js';
import { groupTilesByCell, type TrainingCell, trainingFiles } from '../../src/training/cells.js';
import { validationDate } from '../../src/training/hold-out.js';
import type { ModelSpec, TextureIndex } from '../../src/training/index.js';
import { labelImages } from '../../src/training/labelled-images.js';
import type { FreezingSchedule } from '../../src/training/learner.js';
import type { TransferPolicy } from '../../src/training/model-card.js';
import { makePatches, type TrainValidationPatches } from '../../src/training/patches.js';
import { bestEpoch, trainModel } from '../../src/training/training-loop.js';
import {
  availableSourceModels,
  findSources,
  sourceModelFinder,
  type TransferPlan,
} from '../../src/training/transfer.js';

export interface PlaceData {
  place: TrainingCell;
  dataset: TrainValidationPatches;
}

export interface Curve {
  geocode: string;
  /** The name of its start. */
  start: string;
  seed: number;
  /** Validation loss after each epoch. */
  losses: number[];
  /** Epoch with the lowest selection loss, from 1, and that loss. */
  chosen: { epoch: number; selection: number };
  /** CPU seconds from the start, with what comes before the first epoch, to the end of each. */
  cpu: number[];
}

/** The patches of all places of a collection that have enough of them. */
export async function placesOf(storage: Storage, collection: string, spec: ModelSpec): Promise<PlaceData[]> {
  const tiles = await toArray(storage.catalogue.tiles.values());
  const places = groupTilesByCell(tiles.filter((tile) => tile.collection === collection));
  const from = validationDate(places.map((place) => place.tiles.map(({ start }) => start)));
  const found: PlaceData[] = [];
  for (const place of places) {
    const files = trainingFiles(storage, spec, place);
    if ('skipped' in files) continue;
    const read = await readAcquisitions(files.dates);
    if ('skipped' in read) continue;
    const patches = makePatches(
      spec,
      labelImages(spec, read.dates, files.pairs),
      from === undefined ? undefined : { from },
    );
    if ('dataset' in patches) found.push({ place, dataset: patches.dataset });
  }
  return found;
}

/** How a place begins: fresh without `descent`. */
export interface NamedStart {
  name: string;
  descent?: TransferPlan;
}

export interface CurveOptions {
  spec: ModelSpec;
  seed: number;
  epochs: number;
}

/** Trains a place; nothing is stored. */
export async function curveOf(
  tf: Tf,
  storage: Storage,
  { place, dataset }: PlaceData,
  { name, descent }: NamedStart,
  { spec, seed, epochs }: CurveOptions,
): Promise<Curve> {
  const begun = process.cpuUsage();
  const ancestors = descent && (await findSources(storage, descent, spec.name, place));
  const cpu: number[] = [];
  const onEpoch = () => {
    const { user, system } = process.cpuUsage(begun);
    cpu.push((user + system) / 1e6);
  };
  const from = { start: ancestors?.start, fineTuning: descent?.fineTuning };
  const trained = await trainModel(tf, spec, dataset, { seed, epochs, ...from, onEpoch });
  trained.model.dispose();
  const { losses } = trained;
  // A training whose losses are all infinite or NaN has no best epoch.
  const epoch = bestEpoch(losses) || losses.length;
  return {
    ...{ geocode: place.geocode, start: name, seed, cpu },
    losses: losses.map(({ validation }) => validation),
    chosen: { epoch, selection: losses[epoch - 1]!.selection ?? losses[epoch - 1]!.train },
  };
}

/** A row of the tables. */
export interface StartKind {
  name: string;
  policy: TransferPolicy;
  fineTuning?: FreezingSchedule;
}

/** From the models of a kind that the catalogue has. */
export async function startOf(
  storage: Storage,
  textures: TextureIndex,
  model: string,
  { name, policy, fineTuning = 'all' }: StartKind,
  seed: number,
): Promise<NamedStart> {
  if (policy === 'none') return { name };
  const models = await availableSourceModels(storage, [model], { id: '', log: console.warn });
  const finder = sourceModelFinder(textures, models, policy, seed);
  return { name, descent: { policy, fineTuning, finders: new Map([[model, finder]]) } };
}

/** From the model of each other place of a collection, one by one; named by their ids. */
export async function startsOfOthers(
  storage: Storage,
  model: string,
  { collection, geocode }: TrainingCell,
): Promise<NamedStart[]> {
  const models = await availableSourceModels(storage, [model], { id: '', log: console.warn });
  const others = models.filter((one) => one.collection === collection && one.geocode !== geocode);
  return others.map((other) => {
    const finder = async () => ({ parents: [{ model: other, distance: Number.NaN }] });
    return {
      name: other.id,
      descent: { policy: 'similar', fineTuning: 'all', finders: new Map([[model, finder]]) },
    };
  });
}

export interface TuneOptions {
  spec: ModelSpec;
  rates: number[];
  epochs: number;
  /** As many as are tried, from 1. */
  seeds: number;
}

/** The step size with which fresh models reach the lowest selection loss, in the geometric mean over places and seeds. */
export async function tunedRate(
  tf: Tf,
  storage: Storage,
  places: PlaceData[],
  { spec, rates, epochs, seeds }: TuneOptions,
  log: (line: string) => void,
): Promise<number> {
  if (rates.length === 1) return rates[0]!;
  const scores: [rate: number, score: number][] = [];
  for (const learningRate of rates) {
    const logs: number[] = [];
    for (const place of places)
      for (let seed = 1; seed <= seeds; seed++) {
        const options = { spec: { ...spec, learningRate }, seed, epochs };
        const { chosen } = await curveOf(tf, storage, place, { name: 'none' }, options);
        logs.push(Math.log(chosen.selection));
      }
    const score = Math.exp(logs.reduce((sum, one) => sum + one, 0) / logs.length);
    scores.push([learningRate, score]);
    log(`${spec.name}, step size ${learningRate}: lowest selection loss ${score.toExponential(3)}`);
  }
  return scores.reduce((best, one) => (one[1] < best[1] ? one : best))[0];
}
