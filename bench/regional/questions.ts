/** The errors of adapted models for three questions: ground that they have not seen, dates that they have not seen, and both. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import { toArray } from '../../src/async/index.js';
import type { Tf } from '../../src/engines/tfjs.js';
import type { Storage } from '../../src/storage/index.js';
import { readAcquisitions } from '../../src/training/acquisitions.js';
import { groupTilesByCell, trainingFiles } from '../../src/training/cells.js';
import { meanSquaredError } from '../../src/training/evaluation.js';
import { getModelSpec, type TrainResults } from '../../src/training/index.js';
import { type LabelledImage, labelImages } from '../../src/training/labelled-images.js';
import { buildModel } from '../../src/training/models/network.js';
import type { ModelSpec } from '../../src/training/models/spec.js';
import { setWeights } from '../../src/training/models/weights.js';
import { type AppliedHoldOut, makePatches, type Patches } from '../../src/training/patches.js';
import { sourceModelFiles } from '../../src/training/transfer.js';
import { readSourceWeights } from '../../src/training/warm-start.js';

export const QUESTIONS = [
  'new ground, same dates',
  'same ground, later dates',
  'new ground, later dates',
] as const;
export type Question = (typeof QUESTIONS)[number];

/** Errors of the adapted model and of the base, at each place where the question can be asked. */
export type QuestionErrors = Record<Question, Record<'adapted' | 'base', Map<string, number>>>;

/** A place of a region that has an adapted model. */
export interface RegionPlace {
  geocode: string;
  /** All dates. */
  images: LabelledImage[];
  holdOut: AppliedHoldOut;
}

/** Reads the places of a region that have models. */
export async function readPlaces(
  storage: Storage,
  collection: string,
  { models, base }: TrainResults,
): Promise<RegionPlace[]> {
  const places = await readImages(storage, collection, base!.model, (geocode) =>
    models.some((model) => model.geocode === geocode),
  );
  return [...places].map(([geocode, images]) => {
    const { holdOut } = base!.distributed!.places.find((place) => place.geocode === geocode)!;
    return { geocode, images, holdOut: holdOut! };
  });
}

/** All dates of the chosen cells of a collection. */
export async function readImages(
  storage: Storage,
  collection: string,
  model: string,
  isChosen: (geocode: string) => boolean,
): Promise<Map<string, LabelledImage[]>> {
  const spec = getModelSpec(model);
  const tiles = await toArray(storage.catalogue.tiles.values());
  const places = new Map<string, LabelledImage[]>();
  for (const cell of groupTilesByCell(tiles.filter((tile) => tile.collection === collection))) {
    const { geocode } = cell;
    if (!isChosen(geocode)) continue;
    const files = trainingFiles(storage, spec, cell);
    if ('skipped' in files) throw new Error(`${geocode}: ${files.skipped}`);
    const read = await readAcquisitions(files.dates);
    if ('skipped' in read) throw new Error(`${geocode}: ${read.skipped}`);
    places.set(geocode, labelImages(spec, read.dates, files.pairs));
  }
  return places;
}

/** Sets a network to the weights of a stored model. */
export async function loadStored(tf: Tf, storage: Storage, id: string, network: LayersModel): Promise<void> {
  const record = (await storage.models.get(id))!;
  const read = await readSourceWeights(await sourceModelFiles(storage, record), network);
  if ('reason' in read) throw new Error(`${id}: ${read.reason}`);
  setWeights(tf, network, read.values);
}

/** Must be called before the models of the places are replaced by others. */
export async function errorsByQuestion(
  tf: Tf,
  storage: Storage,
  places: RegionPlace[],
  { models, base }: TrainResults,
): Promise<QuestionErrors> {
  const none = () => ({ adapted: new Map<string, number>(), base: new Map<string, number>() });
  const byQuestion: QuestionErrors = {
    [QUESTIONS[0]]: none(),
    [QUESTIONS[1]]: none(),
    [QUESTIONS[2]]: none(),
  };
  const spec = getModelSpec(base!.model);
  const network = buildModel(tf, spec, 1);
  for (const { geocode, images, holdOut } of places) {
    if (!holdOut.from) continue;
    const sets = setsOf(spec, images, Date.parse(holdOut.from), JSON.stringify(holdOut.window));
    const errors = async (id: string) => {
      await loadStored(tf, storage, id, network);
      return QUESTIONS.map((question) => sets[question] && meanSquaredError(tf, network, sets[question]));
    };
    const adapted = await errors(models.find((model) => model.geocode === geocode)!.id);
    const before = await errors(base!.id);
    for (const [i, question] of QUESTIONS.entries()) {
      if (adapted[i] === undefined) continue;
      byQuestion[question].adapted.set(geocode, adapted[i]);
      byQuestion[question].base.set(geocode, before[i]!);
    }
  }
  network.dispose();
  return byQuestion;
}

/** Patches of each question. Absent if too few patches are usable, so that other ground would be held out. */
function setsOf(
  spec: ModelSpec,
  images: LabelledImage[],
  from: number,
  window: string,
): Partial<Record<Question, Patches>> {
  const split = (chosen: LabelledImage[], first?: number) => {
    const made = makePatches(spec, chosen, first === undefined ? undefined : { from: first });
    return 'dataset' in made && JSON.stringify(made.dataset.holdOut.window) === window
      ? made.dataset
      : undefined;
  };
  return {
    [QUESTIONS[0]]: split(images.filter(({ time }) => time < from))?.validation,
    [QUESTIONS[1]]: split(images.filter(({ time }) => time >= from))?.train,
    [QUESTIONS[2]]: split(images, from)?.validation,
  };
}
