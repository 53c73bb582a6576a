/** The labelled spectra of a job. Each run has those of its tiles in memory; sums over all runs are exact. */
import type { GridName } from '../../grid/index.js';
import type { JobContext } from '../../jobs/index.js';
import type { TileSource } from '../../storage/index.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { type AnalysedCollection, allGatherChecked, forEachTile } from '../analysis.js';
import {
  addReliability,
  addScores,
  type GradientSums,
  type GradientUnits,
  noScores,
  RELIABILITY_BINS,
  SCORE_UNIT,
  type ScoreSums,
  TEMPERATURES,
} from '../dense-training.js';
import { ALL, type Folds, mayTrain } from '../labelled-pixels.js';
import { classesOfCodes, type Labels, openLabels, withLabels } from '../labels.js';
import { countOf, type DenseLayer, type Sizes, type Standardisation } from '../methods/dense-network.js';
import type { Evaluation } from '../optimizers.js';
import { BYTES_PER_VALUE, type LabelledSpectra, type Precision, sampleFractions } from '../samples.js';

/** A tile with labelled pixels. Plain JSON. */
export interface LabelledTileFacts {
  id: string;
  version: string;
  /** Milliseconds since 1970. */
  start: number;
  grid: GridName;
  geocode: string;
  source: TileSource;
}

export interface TrainingData {
  standard: Standardisation;
  /** Table of the class of each code, counted from 0. */
  classOf: Uint8Array;
  classes: number;
  precision: Precision;
  /** Spectra of this run. */
  spectra: LabelledSpectra[];
  /** Number of pixels of all runs in each training. */
  pixels: number[];
  /** Labelled tiles of all runs, ordered by id. */
  tiles: LabelledTileFacts[];
}

/** Memory limit for the spectra of a job. A job with more labelled pixels uses a part of them, chosen by hash. */
const MAX_SPECTRA_BYTES = 2 ** 27;

/** JSON Schema of a list of `LabelledTileFacts`. */
export const LABELLED_TILES = listOf(
  objectOf({
    id: TEXT,
    version: TEXT,
    start: NUMBER,
    grid: { enum: ['geohash', 'quadtile'] },
    geocode: TEXT,
    source: TEXT,
  }),
);
const checkGathered = messageCheck(objectOf({ pixels: listOf(COUNT), tiles: LABELLED_TILES }));
const checkGradient = messageCheck(objectOf({ loss: NUMBER, gradient: TEXT }));
const checkScores = messageCheck(
  objectOf({
    squares: listOf(objectOf({ square: COUNT, table: listOf(listOf(COUNT)), losses: listOf(NUMBER) })),
    reliability: listOf(listOf(objectOf({ pixels: COUNT, right: COUNT, probability: COUNT }))),
  }),
);

/** Reads each tile once. `labelled`: labelled pixels of all runs, by code. */
export async function gatherTrainingData(
  analysed: AnalysedCollection,
  of: {
    labels: Labels;
    folds: Folds;
    codes: readonly number[];
    standard: Standardisation;
    labelled: ReadonlyMap<number, number>;
    precision: Precision;
  },
): Promise<TrainingData> {
  const { labels, folds, codes, standard, labelled, precision } = of;
  const bytesPerPixel = BYTES_PER_VALUE[precision] * analysed.bands.length;
  const shares = sampleFractions(labelled, MAX_SPECTRA_BYTES / bytesPerPixel);
  const found: { tile: LabelledTileFacts; spectra: LabelledSpectra[] }[] = [];
  const open = await openLabels(labels);
  await forEachTile(analysed, async (tile, file) => {
    const { id, version, start, grid, geocode, source } = tile;
    const cell = { grid, geocode };
    const spectra = await withLabels(analysed.context, open, tile, (labels) =>
      analysed.compute({ kind: 'spectra', file, cell, labels, folds, standard, shares, precision }),
    );
    if (spectra && spectra.length > 0)
      found.push({ tile: { id, version, start, grid, geocode, source }, spectra });
  });
  const spectra = found.flatMap((one) => one.spectra);
  const pixelsOf = (training: number) =>
    spectra.reduce((sum, { near, pixels }) => sum + (mayTrain(near, training) ? pixels : 0), 0);
  const own = {
    pixels: Array.from({ length: ALL + 1 }, (_, training) => pixelsOf(training)),
    tiles: found.map(({ tile }) => tile),
  };
  const messages = await allGatherChecked(analysed.job, own, checkGathered);
  return {
    standard,
    classOf: classesOfCodes(codes),
    classes: codes.length,
    precision,
    spectra,
    tiles: messages.flatMap(({ tiles }) => tiles).sort((a, b) => (a.id < b.id ? -1 : 1)),
    pixels: own.pixels.map((_, training) => messages.reduce((sum, { pixels }) => sum + pixels[training], 0)),
  };
}

/**
 * The mean cross entropy over the pixels of a training and its gradient, over all runs, with the same bits on any distribution of the
 * tiles. `bytes`: size of the exchanged sums.
 */
export async function lossOf(
  { context: { workers }, job, compute }: AnalysedCollection,
  data: TrainingData,
  { training, sizes, parameters }: { training: number; sizes: Sizes; parameters: Float64Array },
): Promise<Evaluation & { bytes: number }> {
  const { classOf } = data;
  const pixels = data.pixels[training];
  const spectra = data.spectra.filter(({ near }) => mayTrain(near, training));
  const units = unitsOf(data.precision, pixels);
  const own = new Float64Array(countOf(sizes));
  let loss = 0;
  await inParts(workers.threads, spectra, async (spectra) => {
    const task = { kind: 'gradient', spectra, classOf, sizes, parameters, units } as const;
    const sums = await compute(task);
    loss += sums.loss;
    addTo(own, sums.gradient);
  });
  const sums = await sumOfRuns({ loss, gradient: own }, job);
  return {
    // A sum beyond exact integers is too large for a minimum.
    value: Number.isSafeInteger(sums.loss) ? (sums.loss * units.loss) / pixels : Infinity,
    gradient: sums.gradient.map((value) => (value * units.gradient) / pixels),
    bytes: sums.gradient.length * bytesEach(sums.gradient),
  };
}

/**
 * Units for which sums are exact if the mean over the pixels is below 2^14, which exceeds standardised values. In mixed precision, sums of
 * a gradient fit into 32 bits if the mean is below 8.
 */
function unitsOf(precision: Precision, pixels: number): GradientUnits {
  const bits = Math.ceil(Math.log2(pixels));
  const loss = Math.max(SCORE_UNIT, 2 ** (bits + 14 - 53));
  return { loss, gradient: precision === 'full' ? loss : 2 ** (bits + 3 - 31) };
}

async function sumOfRuns({ loss, gradient }: GradientSums, job: JobContext): Promise<GradientSums> {
  const messages = await allGatherChecked(job, { loss, gradient: encodedSums(gradient) }, checkGradient);
  const total = { loss: 0, gradient: new Float64Array(gradient.length) };
  for (const message of messages) {
    total.loss += message.loss;
    addTo(total.gradient, decodedSums(message.gradient, gradient.length));
  }
  return total;
}

/** Base64 of integers: 32-bit integers if all of them fit, else float64. */
export function encodedSums(sums: Float64Array): string {
  const { buffer } = bytesEach(sums) === 4 ? Int32Array.from(sums) : Float64Array.from(sums);
  return Buffer.from(buffer).toString('base64');
}

const bytesEach = (sums: Float64Array) => (sums.every((value) => Math.abs(value) < 2 ** 31) ? 4 : 8);

/** Throws an Error if it does not hold `length` numbers. */
export function decodedSums(text: string, length: number): Int32Array | Float64Array {
  const { buffer } = Uint8Array.from(Buffer.from(text, 'base64'));
  if (buffer.byteLength === 4 * length) return new Int32Array(buffer);
  if (buffer.byteLength === 8 * length) return new Float64Array(buffer);
  throw new Error(`another node has sent sums of ${buffer.byteLength} bytes instead of ${length} numbers`);
}

/** Scores layers on a fold, over all runs. `scored`: 1 for each class whose pixels are scored. */
export async function scoresOn(
  { context: { workers }, job, compute }: AnalysedCollection,
  data: TrainingData,
  { fold, layers, scored }: { fold: number; layers: DenseLayer[]; scored: Uint8Array },
): Promise<ScoreSums> {
  const own = noScores();
  const spectra = data.spectra.filter((one) => one.fold === fold);
  await inParts(workers.threads, spectra, async (spectra) => {
    addScores(own, await compute({ kind: 'score', spectra, classOf: data.classOf, layers, scored }));
  });
  return scoresOfRuns(own, job, data.classes);
}

/** Returns the scores of all runs together. Throws an Error if another node sends scores of another size. */
export async function scoresOfRuns(own: ScoreSums, job: JobContext, classes: number): Promise<ScoreSums> {
  const total = noScores();
  const sent = {
    squares: [...own.squares].map(([square, { table, losses }]) => ({
      square,
      table: [...table].map((one) => [...one]),
      losses: Array.from(losses),
    })),
    reliability: own.reliability,
  };
  for (const { squares, reliability } of await allGatherChecked(job, sent, checkScores)) {
    const isOfSize =
      squares.every(
        ({ table, losses }) =>
          losses.length === TEMPERATURES.length && table.every(([at]) => at < classes ** 2),
      ) &&
      reliability.length === TEMPERATURES.length &&
      reliability.every(({ length }) => length === RELIABILITY_BINS);
    if (!isOfSize) throw new Error('another node has sent scores of another size');
    for (const { square, table, losses } of squares)
      addScores(total, {
        squares: new Map([
          [square, { table: new Map(table as [number, number][]), losses: Float64Array.from(losses) }],
        ]),
        reliability: [],
      });
    addReliability(total.reliability, reliability);
  }
  // The bootstrap draws squares by their place in the list, which must not depend on which tile was scored first.
  return { ...total, squares: new Map([...total.squares].sort(([a], [b]) => a - b)) };
}

/** Works on a list in one part per thread, in parallel. */
async function inParts<T>(
  threads: number,
  list: readonly T[],
  work: (part: T[]) => Promise<void>,
): Promise<void> {
  const parts = Array.from({ length: threads }, (_, part) => list.filter((_, i) => i % threads === part));
  await Promise.all(parts.filter(({ length }) => length > 0).map(work));
}

function addTo(total: Float64Array, values: Float64Array | Int32Array): void {
  for (let i = 0; i < total.length; i++) total[i] += values[i];
}
