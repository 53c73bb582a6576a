/**
 * Fits classifiers to the labelled pixels, and describes the one that is used for the map: its training, and the importance of the bands
 * for its classes.
 */
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { allGatherChecked } from '../analysis.js';
import { type NetMethod, netMethod } from '../cnn/net.js';
import type { CamSums } from '../cnn/session.js';
import { ALL, FOLDS, type GroundSquares } from '../labelled-pixels.js';
import type { FittedAnalysis } from '../map-analysis.js';
import { parseNetwork, saveClassifier } from '../methods/dense-network.js';
import { layersMethod, type PixelMethod } from '../methods/methods.js';
import { BYTES_PER_VALUE, PRECISIONS, type Precision } from '../samples.js';
import { LABELLED_TILES, type LabelledTileFacts } from './dataset.js';
import {
  CLASSIFIERS,
  type ClassifyInputs,
  type FittedClassifier,
  type Fitting,
  fitClassifier,
  type LabelledFitting,
  scoredCodes,
} from './fit.js';
import {
  ACCURACY_SCORES,
  type AccuracyScores,
  type Calibration,
  type ClassifierCandidate,
  crossValidate,
  INTERVAL,
  reportedScores,
  selectCandidate,
  trainChosen,
} from './selection.js';

/** How a classifier was trained. Plain JSON. */
export interface TrainingFacts {
  precision: Precision;
  /** Labelled pixels that trained it. Pixels are left out if memory does not suffice. */
  pixels: number;
  /** Number of weights. */
  parameters: number;
  /** Bytes of the standardised spectra in memory. */
  spectraBytes: number;
  /** Bytes of the gradients that a node sends. */
  gradientBytes: number;
  /** Evaluations of the loss by L-BFGS; absent if an engine trained it. */
  evaluations?: number;
  /** Name and version of the engine; absent without an engine, like the following members. */
  engine?: string;
  epochs?: number;
  /** Steps of Adam. */
  steps?: number;
  /** Steps that were skipped because a gradient exceeded float16. */
  overflows?: number;
}

const TRAINING_FACTS = objectOf(
  {
    precision: { enum: PRECISIONS },
    pixels: COUNT,
    parameters: COUNT,
    spectraBytes: COUNT,
    gradientBytes: COUNT,
  },
  { evaluations: COUNT, engine: TEXT, epochs: COUNT, steps: COUNT, overflows: COUNT },
);

/** Importance of each band (Grad-CAM), 0 to 1, for each class; null if no pixel of the class is classified correctly. Plain JSON. */
export type BandWeights = (number[] | null)[];

const BAND_WEIGHTS = { type: 'array', items: { anyOf: [listOf(NUMBER), { type: 'null' }] } };

const checkCams = messageCheck(objectOf({ pixels: listOf(COUNT), sums: listOf(NUMBER) }));

/** Returns undefined for discriminants, which are computed from sums without training steps. */
function trainingFacts({ nets, data }: Fitting, fitted: FittedClassifier): TrainingFacts | undefined {
  if (fitted.kind === 'layers') {
    const { layers, descent } = fitted;
    if (!descent) return undefined;
    const pixels = data.pixels[ALL];
    return {
      precision: data.precision,
      pixels,
      parameters: layers.reduce((sum, { weights, bias }) => sum + weights.length + bias.length, 0),
      spectraBytes: pixels * data.standard.centre.length * BYTES_PER_VALUE[data.precision],
      gradientBytes: descent.bytes,
      evaluations: descent.evaluations,
    };
  }
  const { session, epochs } = nets!;
  const { weights, steps, overflows, bytes, pixels } = fitted;
  return {
    engine: `${session.engine.name} ${session.engine.version}`,
    precision: session.precision,
    pixels,
    epochs,
    parameters: weights.length,
    steps,
    overflows,
    spectraBytes: session.bytes,
    gradientBytes: bytes,
  };
}

/** Computed on the pixels of each fold, which did not train its classifier. Returns undefined unless it is a network. */
async function bandWeights(
  fitting: Fitting,
  { classifier, strength }: ClassifierCandidate,
): Promise<BandWeights | undefined> {
  const { nets, analysed } = fitting;
  if (!nets || classifier !== nets.session.shape.name) return undefined;
  const { session } = nets;
  const { classes, bands } = session.shape;
  const total: CamSums = {
    pixels: new Array<number>(classes).fill(0),
    sums: new Float64Array(classes * bands),
  };
  for (let fold = 0; fold < FOLDS; fold++) {
    if (scoredCodes(fitting, fold).size === 0) continue;
    const fitted = await fitClassifier(fitting, classifier, strength, fold);
    if (fitted.kind !== 'net') return undefined;
    const own = await session.cams(fitted.weights, fold);
    const message = { pixels: own.pixels, sums: Array.from(own.sums) };
    for (const { pixels, sums } of await allGatherChecked(analysed.job, message, checkCams)) {
      if (pixels.length !== classes || sums.length !== classes * bands)
        throw new Error('another node has sent sums of another size');
      for (const [c, count] of pixels.entries()) total.pixels[c] += count;
      for (const [at, sum] of sums.entries()) total.sums[at] += sum;
    }
  }
  return total.pixels.map((count, c) => {
    const own = total.sums.slice(c * bands, (c + 1) * bands);
    const most = own.reduce((most, value) => Math.max(most, value), 0);
    return count === 0 || most === 0 ? null : Array.from(own, (value) => value / most);
  });
}

/** A candidate with its scores on ground that did not train it. */
export interface ComparedClassifier
  extends ClassifierCandidate,
    Pick<AccuracyScores, 'oa' | 'oaInterval' | 'aa' | 'kappa'> {}

/** Squares of ground, by their column and row. Plain JSON. */
export interface LabelledSquares extends GroundSquares {
  /** Side in pixels. */
  side: number;
  at: string[];
}

export interface ClassifyFit {
  /** `pixels`, `squares` and `fields`: those with labels of the class. */
  classes: {
    code: number;
    name: string;
    pixels: number;
    squares: number;
    fields: number;
    mean: number[];
  }[];
  chosen: ClassifierCandidate;
  compared: ComparedClassifier[];
  scores: AccuracyScores;
  calibration: Calibration;
  /** Scores of the random split, if that was requested. */
  random?: AccuracyScores;
  /** Tiles with labelled pixels. */
  tiles: LabelledTileFacts[];
  labelled: LabelledSquares;
  sizes: number[];
  /** Rows of the tiles. */
  rows: number;
  /** Files of the model, in base64. */
  files: Record<string, string>;
  /** Present if an engine trained it. */
  training?: TrainingFacts;
  /** Importance of each band for each class; absent unless it is a network. */
  bandWeights?: BandWeights;
}

const CANDIDATE_MEMBERS = {
  classifier: { enum: CLASSIFIERS },
  strength: NUMBER,
  entropy: NUMBER,
  excess: NUMBER,
  excessError: { anyOf: [NUMBER, { type: 'null' }] },
  temperature: NUMBER,
};

/** JSON Schema of `ClassifyFit`. */
export const CLASSIFY_FIT = objectOf(
  {
    classes: listOf(
      objectOf({
        code: COUNT,
        name: TEXT,
        pixels: COUNT,
        squares: COUNT,
        fields: COUNT,
        mean: listOf(NUMBER),
      }),
    ),
    chosen: objectOf(CANDIDATE_MEMBERS),
    compared: listOf(
      objectOf({ ...CANDIDATE_MEMBERS, oa: NUMBER, aa: NUMBER, kappa: NUMBER }, { oaInterval: INTERVAL }),
    ),
    scores: ACCURACY_SCORES,
    calibration: objectOf({
      temperature: NUMBER,
      error: NUMBER,
      uncalibrated: NUMBER,
      bins: listOf(objectOf({ pixels: COUNT, probability: NUMBER, accuracy: NUMBER })),
    }),
    tiles: LABELLED_TILES,
    labelled: objectOf({ side: COUNT, size: listOf(NUMBER), at: listOf(TEXT) }),
    sizes: listOf(COUNT),
    rows: COUNT,
    files: { type: 'object', additionalProperties: TEXT },
  },
  { random: ACCURACY_SCORES, training: TRAINING_FACTS, bandWeights: BAND_WEIGHTS },
);

/** Scores the compared classifiers, and trains the one that is used for the map. */
export async function fitMap(
  fitting: LabelledFitting,
  { labels, classifier }: ClassifyInputs,
  rows: number,
): Promise<FittedAnalysis<ClassifyFit>> {
  const { codes, sums, data, folds } = fitting;
  const all = await crossValidate(fitting, classifier);
  const { candidates, chosen } = selectCandidate(all, classifier);
  const compared = candidates.map((candidate): ComparedClassifier => {
    const own = all.filter((one) => one.classifier === candidate.classifier);
    const { oa, oaInterval, aa, kappa } = reportedScores(own, codes, undefined).scores;
    return { ...candidate, oa, ...(oaInterval && { oaInterval }), aa, kappa };
  });
  const { scores, calibration } = reportedScores(all, codes, classifier);
  const fitted = await trainChosen(fitting, chosen);
  const { method, files, sizes } = await methodOf(fitting, fitted);
  const training = trainingFacts(fitting, fitted);
  const weights = await bandWeights(fitting, chosen);
  const nameOf = (code: number) => labels.names?.[code] ?? defaultName(code);
  const squaresWith = (code: number) => [...folds.counts].filter(([, by]) => by.has(code));
  return {
    map: {
      method,
      bands: codes.map((code) => classBandName(code, nameOf(code))),
      classes: { best: 'most', codes, names: codes.map(nameOf) },
    },
    fit: {
      classes: sums(ALL).classes.map(({ code, mean, pixels }) => {
        const squares = squaresWith(code);
        const facts = { pixels, squares: squares.length, fields: fieldCount(code, squares) };
        return { code, name: nameOf(code), mean: Array.from(mean), ...facts };
      }),
      chosen,
      compared,
      scores,
      calibration: { temperature: chosen.temperature, ...calibration },
      tiles: data.tiles,
      labelled: { side: folds.side, size: folds.size, at: [...folds.counts.keys()].sort() },
      sizes,
      rows,
      files: Object.fromEntries(
        Object.entries(files).map(([name, bytes]) => [name, Buffer.from(bytes).toString('base64')]),
      ),
      ...(training && { training }),
      ...(weights && { bandWeights: weights }),
    },
  };
}

/** Squares with at most one other square between them may lie in one field. */
const NEAR = [-2, -1, 0, 1, 2];
/** Least part of the squares of a class in which most labels are of this class. */
const FIELD_SHARE = 0.5;

/**
 * Returns the number of groups of squares, by column and row, that are near each other and have mainly labels of this class: they may be
 * one field each. If most of its squares have more labels of other classes, each counts, because the labels are scattered.
 */
function fieldCount(code: number, squares: [key: string, by: ReadonlyMap<number, number>][]): number {
  const main = squares.filter(([, by]) => {
    const labels = [...by.values()].reduce((sum, count) => sum + count, 0);
    return 2 * by.get(code)! > labels;
  });
  if (main.length < FIELD_SHARE * squares.length) return squares.length;
  const unreached = new Set(main.map(([key]) => key));
  let count = 0;
  for (const first of unreached) {
    count++;
    unreached.delete(first);
    const reached = [first];
    for (const key of reached) {
      const [column, row] = key.split(' ').map(Number) as [number, number];
      for (const x of NEAR)
        for (const y of NEAR) {
          const next = `${column + x} ${row + y}`;
          if (unreached.delete(next)) reached.push(next);
        }
    }
  }
  return count;
}

/** Name of a class whose labels have none. */
export const defaultName = (code: number) => `class ${code}`;

/**
 * Returns the method of the map and the files of the model. The method uses the stored float32 weights, so that `predict` makes the same
 * map.
 */
async function methodOf(
  { data, nets }: Fitting,
  fitted: FittedClassifier,
): Promise<{ method: PixelMethod | NetMethod; files: Record<string, Uint8Array>; sizes: number[] }> {
  const bands = data.standard.centre.length;
  if (fitted.kind === 'net') {
    const { shape } = nets!.session;
    const files = await nets!.session.files(fitted.weights);
    return { method: netMethod(shape.name, shape.classes, files), files, sizes: [bands, shape.classes] };
  }
  const { layers } = fitted;
  const sizes = [bands, ...layers.map(({ bias }) => bias.length)];
  const files = saveClassifier({ ...data.standard, layers });
  return { method: layersMethod(parseNetwork('classifier', files['weights.bin'], sizes)), files, sizes };
}

/** Name of the band of probabilities of a class. */
export const classBandName = (code: number, name: string) => `${code} ${name}`;
