/** Maps of classes from labels. */
import { html } from '../html/index.js';
import type { JobContext } from '../jobs/index.js';
import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../json-schema.js';
import { parseFilter, rawUnlessAsked, requireCollections } from '../query/index.js';
import { type Analysed, type AnalysisContext, withBands, withOneSize } from './analysis-run.js';
import { type LabelledSums, labelledSums } from './class-statistics.js';
import { CLASSIFIER, storeClassifier } from './classifier/card.js';
import {
  type Calibration,
  type Candidate,
  candidates,
  chosenOf,
  isBaseline,
  trainChosen,
  validated,
} from './classifier/choose.js';
import {
  CLASSIFIERS,
  type ClassifierName,
  type Fitted as FittedClassifier,
  type Fitting,
} from './classifier/fit.js';
import { modelFiles, networkOf } from './classifier/model-files.js';
import {
  BAND_WEIGHTS,
  type BandWeights,
  bandWeights,
  NET_TRAINING,
  type NetTrainingFacts,
  netFacts,
} from './classifier/net-facts.js';
import type { Standard } from './classifier/network.js';
import { LABELLED_TILES, type LabelledTileFacts, trainingData } from './classifier/training-data.js';
import { fewLabels, netOption } from './errors.js';
import { type AnalysisInputs, collectionOf } from './inputs.js';
import { checkLabels, LABELS, type Labels } from './labels/labels.js';
import type { Scores } from './labels/scores.js';
import { type SplitKind, TRAIN, TUNE, VALIDATION } from './labels/split.js';
import type { Fitted, MapAnalysis, MapResults } from './map-process.js';
import { type NetMethod, netMethod } from './nets/net-method.js';
import { isNet, type NetName, PRECISIONS, type Precision, SETTINGS } from './nets/nets.js';
import { NetSession } from './nets/session.js';
import { layersMethod, type PixelMethod } from './pixels/methods.js';
import { spectrumChart } from './report/charts.js';
import { colourKey, type Section, tableOf } from './report/report.js';

export interface ClassifyInputs extends AnalysisInputs {
  labels: Labels;
  /** Default: the best on the pixels for tuning. */
  classifier?: ClassifierName;
  /** Unit of the split into training and validation: squares of 32 x 32 pixels, or single pixels. */
  split?: SplitKind;
  seed?: number;
  /** Times that a network sees each labelled pixel. */
  epochs?: number;
  /** Default: `full`. */
  precision?: Precision;
}

/** A classifier that was tried, and how it does on the validation pixels. */
interface Compared extends Candidate {
  oa: number;
  aa: number;
  kappa: number;
}

interface ClassifyFit {
  classes: { code: number; name: string; train: number; validation: number; mean: number[] }[];
  chosen: Candidate;
  compared: Compared[];
  scores: Scores;
  calibration: Calibration;
  /** Scores of the random split, if that was requested. */
  random?: Scores;
  /** Tiles with labelled pixels. */
  tiles: LabelledTileFacts[];
  sizes: number[];
  /** Files of the model, in base64. */
  files: Record<string, string>;
  /** If an engine trained it. */
  training?: NetTrainingFacts;
  /** For each class how much each band counts, if its convolutions run along the bands. */
  bandWeights?: BandWeights;
}

export interface ClassifyResults extends MapResults, Scores {
  classifier: ClassifierName;
  /** Strength of its regularization; of `lda` the shrinkage. */
  strength: number;
  /** Shrinkage of the linear discriminants that it is compared with, or that it is; absent if there are none. */
  shrinkage?: number;
  compared: Compared[];
  calibration: Calibration;
  split: SplitKind;
  names: Record<string, string>;
  /** Overall accuracy by place, if the split was random: the difference is what the random one overestimates. */
  oaByPlace?: number;
  /** If an engine trained the classifier. */
  training?: NetTrainingFacts;
  /** For each class, in the order of `classes`, how much each band counts (Grad-CAM), 0 to 1; null without a pixel that is right. */
  bandWeights?: BandWeights;
  /** The stored classifier, for `predict`. */
  model: string;
  version: string;
}

const DEFAULT_SEED = 1;

const SCORES = objectOf({
  ...{ pixels: COUNT, oa: NUMBER, aa: NUMBER, kappa: NUMBER, confusion: listOf(listOf(COUNT)) },
  classes: listOf(objectOf({ code: COUNT, pixels: COUNT, recall: NUMBER, precision: NUMBER, f1: NUMBER })),
});

const CANDIDATE = {
  classifier: { enum: CLASSIFIERS },
  strength: NUMBER,
  tuned: NUMBER,
  entropy: NUMBER,
  temperature: NUMBER,
};

export const classify: MapAnalysis<ClassifyInputs, ClassifyFit> = {
  name: 'classify',
  title: 'Classification',
  description:
    'Maps of classes and of their probabilities, from labelled pixels: by linear discriminant analysis with shrinkage (lda), logistic regression, a multilayer perceptron (mlp), or convolutional networks along the bands (cnn1d), over the ground (cnn2d) or both (resnet3d). It is validated on squares of ground that it has not seen, and stored as a model for predict.',
  properties: {
    labels: LABELS,
    classifier: {
      enum: CLASSIFIERS,
      description: 'Default: the best of lda, logistic and mlp on pixels that are kept for tuning',
    },
    epochs: {
      type: 'integer',
      minimum: 1,
      maximum: 1000,
      description:
        'Times that a network (cnn1d, cnn2d, resnet3d) sees each labelled pixel; default: 30, 20, 12',
    },
    precision: {
      enum: PRECISIONS,
      default: 'full',
      description: 'mixed holds spectra and sends gradients of networks in float16, in half of the bytes',
    },
    seed: { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1, default: DEFAULT_SEED },
    split: {
      enum: ['place', 'random'],
      default: 'place',
      description:
        'Validate on squares of 32 x 32 pixels that did not train, or on random pixels, which overestimates the accuracy, because neighbours look alike',
    },
  },
  required: ['labels'],
  fit: objectOf(
    {
      classes: listOf(
        objectOf({ code: COUNT, name: TEXT, train: COUNT, validation: COUNT, mean: listOf(NUMBER) }),
      ),
      chosen: objectOf(CANDIDATE),
      compared: listOf(objectOf({ ...CANDIDATE, oa: NUMBER, aa: NUMBER, kappa: NUMBER })),
      scores: SCORES,
      calibration: objectOf({
        ...{ temperature: NUMBER, error: NUMBER, uncalibrated: NUMBER },
        bins: listOf(objectOf({ pixels: COUNT, probability: NUMBER, accuracy: NUMBER })),
      }),
      tiles: LABELLED_TILES,
      sizes: listOf(COUNT),
      files: { type: 'object', additionalProperties: TEXT },
    },
    { random: SCORES, training: NET_TRAINING, bandWeights: BAND_WEIGHTS },
  ),
  check: (inputs) => {
    const { labels, epochs, precision } = inputs;
    checkLabels(labels);
    if (netOf(inputs)) return;
    if (epochs !== undefined) throw netOption('epochs');
    if (precision === 'mixed') throw netOption('mixed precision');
  },
  run: async (context, agreed, inputs, job) => {
    // Squares of ground are counted in pixels: with pixels of two sizes they would overlap.
    const alike = await withOneSize(context, agreed, job);
    // Convolutions need the bands in the order of their wavelengths.
    const analysed = netOf(inputs) ? sorted(alike) : alike;
    const fitted = await withLabelled(context, analysed, inputs, 'place', job, (fitting) =>
      fitMap(fitting, inputs),
    );
    if (inputs.split !== 'random') return { analysed, ...fitted };
    const random = await withLabelled(context, analysed, inputs, 'random', job, (fitting) =>
      validated(fitting, fitted.fit.chosen),
    );
    const codes = fitted.fit.classes.map(({ code }) => code);
    return { analysed, ...fitted, fit: { ...fitted.fit, random: withCodes(random, codes) } };
  },
  conclude: (fit, { split = 'place' }, bands) => {
    const { classes, chosen, compared, calibration, scores, random, training, bandWeights } = fit;
    const wavelengths = bands.map(({ wavelength }) => wavelength);
    const lda = compared.find(({ classifier }) => classifier === 'lda');
    const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
    const shown = random ?? scores;
    const title = (code: number) => classes.find((one) => one.code === code)!.name;
    const overestimate = random && [
      `by place the overall accuracy is ${percent(scores.oa)}, so the random split overestimates it by ${(100 * (random.oa - scores.oa)).toFixed(1)} points`,
    ];
    return {
      summary: {
        ...{
          classifier: chosen.classifier,
          strength: chosen.strength,
          split,
          compared,
          calibration,
          ...shown,
        },
        ...(lda && { shrinkage: lda.strength }),
        names: Object.fromEntries(classes.map(({ code, name }) => [code, name])),
        ...(training && { training }),
        ...(bandWeights && { bandWeights }),
        ...(random && { oaByPlace: scores.oa }),
      },
      files: {},
      facts: [
        `${chosen.classifier}, strength ${chosen.strength}`,
        `overall accuracy ${percent(shown.oa)} on ${shown.pixels} pixels ${random ? 'at random' : 'of ground that did not train'}`,
        ...(overestimate ?? []),
        ...(training ? [trainingText(training)] : []),
      ],
      sections: [
        {
          title: 'Accuracy',
          content: html`<p>Overall ${percent(shown.oa)}, average ${percent(shown.aa)}, kappa ${shown.kappa.toFixed(3)}.</p>${tableOf(
            [
              ...['', 'code', 'class'].map((name) => ({ name })),
              ...['trained on', 'validated on', 'recall', 'precision', 'F1'].map((name) => ({
                name,
                isNumber: true,
              })),
            ],
            shown.classes.map(({ code, pixels, recall, precision, f1 }) => [
              ...[colourKey(code), `${code}`, title(code)],
              ...[`${classes.find((one) => one.code === code)!.train}`, `${pixels}`],
              ...[percent(recall), percent(precision), f1.toFixed(3)],
            ]),
          )}`,
        },
        {
          title: 'Classifiers on the validation pixels',
          content: tableOf(
            [
              { name: 'classifier' },
              ...['strength', 'overall, for tuning', 'overall', 'average', 'kappa'].map((name) => ({
                name,
                isNumber: true,
              })),
            ],
            compared.map(({ classifier, strength, tuned, oa, aa, kappa }) => [
              ...[classifier, `${strength}`, percent(tuned), percent(oa), percent(aa), kappa.toFixed(3)],
            ]),
          ),
        },
        {
          title: 'Calibration of the probabilities',
          content: html`<p>Expected calibration error ${percent(calibration.error)}, ${percent(calibration.uncalibrated)} before the temperature ${calibration.temperature.toFixed(2)}.</p>${tableOf(
            ['mean largest probability', 'pixels', 'of them right'].map((name) => ({ name, isNumber: true })),
            calibration.bins.map(({ pixels, probability, accuracy }) => [
              ...[percent(probability), `${pixels}`, percent(accuracy)],
            ]),
          )}`,
        },
        {
          title: 'Confusion: labels by rows, the map by columns',
          content: tableOf(
            [{ name: '' }, ...shown.classes.map(({ code }) => ({ name: title(code), isNumber: true }))],
            shown.confusion.map((row, i) => [title(shown.classes[i]!.code), ...row.map(String)]),
          ),
        },
        ...(bandWeights ? [bandSection(wavelengths, classes, bandWeights)] : []),
        {
          title: 'Mean spectra of the classes',
          content: spectrumChart(
            wavelengths,
            classes.map(({ name, mean }) => ({ name, values: mean })),
            '',
          ),
        },
      ],
      looks: [
        { title: 'Classes', look: { assets: ['class'] } },
        ...classes.map(({ name }, i) => ({
          title: `Probability of ${name}`,
          look: { bidx: [i + 1], colormap_name: 'viridis', rescale: ['0,1'] },
        })),
      ],
    };
  },
  publish: async (storage, { job, inputs, fit, bands, seconds }) => {
    const { chosen, compared, classes, sizes, tiles, scores, calibration, training } = fit;
    const { id, version } = await storeClassifier(
      storage,
      {
        ...{
          classifier: chosen.classifier,
          strength: chosen.strength,
          collection: collectionOf(inputs),
          job,
        },
        filter: rawUnlessAsked(parseFilter(inputs.filter)),
        ...{ tiles, bands, sizes, calibration, seconds },
        ...(training && { training }),
        classes: classes.map(({ code, name, train, validation }) => ({ code, name, train, validation })),
        split: 'squares of 32 x 32 pixels: 60 % train, 15 % tune, 25 % validate; then all train',
        metrics: { validation: scores },
        baseline: Object.fromEntries(
          compared
            .filter(({ classifier }) => isBaseline(classifier))
            .map(({ classifier, oa, aa, kappa }) => [classifier, { oa, aa, kappa }]),
        ),
        seed: inputs.seed ?? DEFAULT_SEED,
      },
      Object.fromEntries(
        Object.entries(fit.files).map(([name, text]) => [name, Buffer.from(text, 'base64')]),
      ),
    );
    return { model: id, version };
  },
};

/** Trains the classifiers that are compared, and the one that makes the map. */
async function fitMap(
  fitting: Fitting & { codes: number[] },
  { labels, classifier }: ClassifyInputs,
): Promise<Fitted<ClassifyFit>> {
  const { codes, sums, data } = fitting;
  const compared: Compared[] = [];
  for (const one of await candidates(fitting, classifier)) {
    const { oa, aa, kappa } = await validated(fitting, one);
    compared.push({ ...one, oa, aa, kappa });
  }
  const chosen = chosenOf(compared, classifier);
  const { fitted, validating, scores, calibration } = await trainChosen(fitting, chosen);
  const { method, files, sizes } = await methodOf(fitting, fitted);
  const training = netFacts(fitting, fitted);
  const weights = await bandWeights(fitting, validating);
  const nameOf = (code: number) => labels.names?.[code] ?? `class ${code}`;
  const { classes } = sums.of([TRAIN, TUNE, VALIDATION]);
  const pixelsOf = (set: number, code: number) => sums.counts[set]!.get(code) ?? 0;
  return {
    map: {
      method,
      bands: codes.map((code) => bandName(code, nameOf(code))),
      classes: { best: 'most', codes },
    },
    fit: {
      classes: classes.map(({ code, mean }) => ({
        ...{ code, name: nameOf(code), mean: Array.from(mean) },
        train: pixelsOf(TRAIN, code) + pixelsOf(TUNE, code),
        validation: pixelsOf(VALIDATION, code),
      })),
      ...{ chosen, compared, calibration, tiles: data.tiles, sizes },
      scores: withCodes(scores, codes),
      files: Object.fromEntries(
        Object.entries(files).map(([name, bytes]) => [name, Buffer.from(bytes).toString('base64')]),
      ),
      ...(training && { training }),
      ...(weights && { bandWeights: weights }),
    },
  };
}

/** How a classifier is applied, and its files. The map is that of the stored numbers, as `predict` makes it. */
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
  const files = modelFiles({ ...data.standard, layers });
  return { method: layersMethod(networkOf(CLASSIFIER, files['weights.bin']!, sizes)), files, sizes };
}

/** The network that is wanted, if it is one that an engine trains. */
function netOf({ classifier }: ClassifyInputs): NetName | undefined {
  return classifier !== undefined && isNet(classifier) ? classifier : undefined;
}

/** With the bands in the order of their wavelengths. */
function sorted(analysed: Analysed): Analysed {
  const { bands } = analysed;
  return withBands(
    analysed,
    [...bands.keys()].sort((a, b) => bands[a]!.wavelength - bands[b]!.wavelength || a - b),
  );
}

/** Name of the band of probabilities of a class. */
export const bandName = (code: number, name: string) => `${code} ${name}`;

function bandSection(wavelengths: number[], classes: ClassifyFit['classes'], weights: BandWeights): Section {
  const curves = weights.flatMap((values, c) => (values ? [{ name: classes[c]!.name, values }] : []));
  return {
    title: 'Bands that decide (Grad-CAM)',
    content: html`<p>How much each band speaks for the class and against the next best one: means over the validation pixels that are classified correctly, scaled by the largest value.</p>${spectrumChart(wavelengths, curves, '')}`,
  };
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

function trainingText({
  engine,
  precision,
  epochs,
  parameters,
  spectraBytes,
  gradientBytes,
}: NetTrainingFacts) {
  const bytes = `spectra ${megabytes(spectraBytes)}, gradients ${megabytes(gradientBytes)}`;
  return `${parameters} weights, ${epochs} epochs by ${engine}, ${precision} precision: ${bytes}`;
}

/** Scores by the numbers of classes, with their codes. */
function withCodes(scores: Scores, codes: readonly number[]): Scores {
  return { ...scores, classes: scores.classes.map((one, i) => ({ ...one, code: codes[i]! })) };
}

/** Reads the labelled pixels and works with them. Throws TW_ANALYSIS_FEW_LABELS, and the errors of filters if there is no collection of labels. */
async function withLabelled<T>(
  context: AnalysisContext,
  analysed: Analysed,
  inputs: ClassifyInputs,
  split: SplitKind,
  job: JobContext,
  work: (fitting: Fitting & { codes: number[] }) => Promise<T>,
): Promise<T> {
  const { labels, seed = DEFAULT_SEED, precision = 'full' } = inputs;
  job.message('reading labelled pixels');
  if (labels.collection !== undefined)
    await requireCollections(context.storage, { collections: labels.collection });
  const sums = await labelledSums(context, analysed, labels, split, job);
  const codes = codesOf(sums, analysed);
  const labelled = sums.counts.flatMap((set) => [...set.values()]).reduce((sum, pixels) => sum + pixels, 0);
  const of = { labels, split, codes, standard: standardOf(sums), labelled };
  const data = await trainingData(context, analysed, of, job);
  const fitting = { context, data, sums, seed, job, known: new Map(), codes };
  const name = netOf(inputs);
  if (!name) return work(fitting);
  const session = await NetSession.open(context, analysed, { name, precision, ...of }, job);
  try {
    return await work({ ...fitting, nets: { session, epochs: inputs.epochs ?? SETTINGS[name].epochs } });
  } finally {
    session.close();
  }
}

function codesOf({ counts }: LabelledSums, analysed: Analysed): number[] {
  const codes = [...new Set(counts.flatMap((set) => [...set.keys()]))].sort((a, b) => a - b);
  if (codes.length < 2) {
    // Tiles that cannot be read may be why there are no labels.
    const [first] = analysed.counts.failed;
    const why = first ? ` (${analysed.counts.failures} failed: ${first.message})` : '';
    throw fewLabels(`${codes.length} classes have labelled pixels in the tiles${why}`);
  }
  const absent = codes.filter((code) => (counts[TRAIN]!.get(code) ?? 0) < 2);
  if (absent.length > 0)
    throw fewLabels(`of class ${absent.join(', ')} less than 2 pixels are in the squares that train`);
  if (counts[VALIDATION]!.size === 0) throw fewLabels('no labelled pixel is in the squares for validation');
  return codes;
}

/** Of the pixels that train. A band that never changes is only centred. */
function standardOf(sums: LabelledSums): Standard {
  const { mean, covariance } = sums.of([TRAIN]);
  const deviation = mean.map((_, band) => Math.sqrt(covariance[band * (mean.length + 1)]!) || 1);
  return { centre: mean, deviation };
}
