/** Maps of classes from labels: the analysis, and the sections of its report. */
import { html } from '../../html/index.js';
import { defaultToRawSource, parseFilter } from '../../query/index.js';
import { MIN_UNITS } from '../../utils/bootstrap.js';
import { collectionOf, DEFAULT_SEED, requireOneSize } from '../analysis.js';
import { spectrumChart } from '../charts.js';
import {
  CLASSIFY_PROPERTIES,
  type ClassifierName,
  type ClassifyInputs,
  requestedNetwork,
  sortedByWavelength,
  withTrainingData,
} from '../classification/fit.js';
import {
  type BandWeights,
  CLASSIFY_FIT,
  type ClassifyFit,
  type ComparedClassifier,
  fitMap,
  type TrainingFacts,
} from '../classification/map-fit.js';
import {
  type AccuracyScores,
  type Calibration,
  crossValidate,
  isBaseline,
  reportedScores,
} from '../classification/selection.js';
import { pixelHeight, storeClassifier } from '../classification/stored-classifier.js';
import { fewLabels, netOption } from '../errors.js';
import { GAP_PX, type SplitKind, SQUARE_SIDES } from '../labelled-pixels.js';
import { checkLabels } from '../labels.js';
import type { MapAnalysis, MapResults } from '../map-analysis.js';
import { bandMap, colourKey, columns, htmlTable, percentText, type Section } from '../report.js';
import type { AnalysedBand } from '../tile-spectrum.js';

export interface ClassifyResults extends MapResults, AccuracyScores {
  classifier: ClassifierName;
  /** Regularization strength; for `lda` the shrinkage. */
  strength: number;
  /** Shrinkage of the linear discriminants among the compared classifiers; absent if there are none. */
  shrinkage?: number;
  compared: ComparedClassifier[];
  calibration: Calibration;
  split: SplitKind;
  names: Record<string, string>;
  /** Side of the squares of ground in pixels. */
  side: number;
  /** Limits of the scores, such as classes in few squares. */
  warnings: string[];
  /** Overall accuracy by place, if the split was random. The random split overestimates the accuracy by the difference. */
  oaByPlace?: number;
  /** Absent for `lda`, which is not trained in steps. */
  training?: TrainingFacts;
  /** Importance of each band (Grad-CAM), 0 to 1, for each class in the order of `classes`; null if no pixel of the class is correct. */
  bandWeights?: BandWeights;
  /** The stored classifier, for `predict`. */
  model: string;
  version: string;
}

export const spectralClassificationProcess: MapAnalysis<ClassifyInputs, ClassifyFit> = {
  name: 'classify',
  title: 'Classification',
  description:
    'Maps of classes and of their probabilities, from labelled pixels: by linear discriminant analysis with shrinkage (lda), logistic regression, a multilayer perceptron (mlp), or convolutional networks along the bands (cnn1d), or also over neighbouring pixels (resnet3d). The classifier is scored on squares of ground that did not train it, and stored as a model for predict.',
  properties: CLASSIFY_PROPERTIES,
  required: ['labels'],
  fit: CLASSIFY_FIT,
  check: async (inputs) => {
    await checkLabels(inputs.labels);
    if (inputs.epochs !== undefined && !requestedNetwork(inputs)) throw netOption();
  },
  run: async (agreed, inputs) => {
    // The squares of the split are counted in pixels. With pixels of two sizes they would overlap.
    const alike = await requireOneSize(agreed);
    // Convolutions need the bands in the order of their wavelengths.
    const analysed = requestedNetwork(inputs) ? sortedByWavelength(alike) : alike;
    const fitted = (split: SplitKind) =>
      withTrainingData(analysed, inputs, split, (fitting) => fitMap(fitting, inputs, alike.rows));
    if (inputs.split !== 'random') return { analysed, ...(await fitted('place')) };
    try {
      const { map, fit } = await fitted('place');
      const random = await withTrainingData(analysed, inputs, 'random', async (fitting) => {
        const all = await crossValidate(fitting, fit.chosen.classifier);
        return reportedScores(all, fitting.codes, fit.chosen.classifier).scores;
      });
      return { analysed, map, fit: { ...fit, random } };
    } catch (error) {
      if (!fewLabels.is(error)) throw error;
      return { analysed, ...(await fitted('random')) };
    }
  },
  conclude: (fit, { split = 'place' }, bands) => {
    const { classes, chosen, compared, calibration, scores, random, training, bandWeights } = fit;
    const lda = compared.find(({ classifier }) => classifier === 'lda');
    const shown = random ?? scores;
    const warnings = warningsOf(fit, split);
    const overestimate = random && [
      `by place the overall accuracy is ${percentText(scores.oa)}, so the random split overestimates it by ${(100 * (random.oa - scores.oa)).toFixed(1)} points`,
    ];
    return {
      summary: {
        classifier: chosen.classifier,
        strength: chosen.strength,
        split,
        compared,
        calibration,
        side: fit.labelled.side,
        warnings,
        ...shown,
        ...(lda && { shrinkage: lda.strength }),
        names: Object.fromEntries(classes.map(({ code, name }) => [code, name])),
        ...(training && { training }),
        ...(bandWeights && { bandWeights }),
        ...(random && { oaByPlace: scores.oa }),
      },
      facts: [
        `${chosen.classifier}, strength ${chosen.strength}`,
        `overall accuracy ${percentText(shown.oa)}${intervalText(shown.oaInterval)} on ${shown.pixels} pixels ${split === 'random' ? 'at random' : `of ${shown.squares} squares of ground that did not train`}`,
        ...warnings,
        ...(overestimate ?? []),
        ...(training ? [trainingText(training)] : []),
      ],
      sections: classSections(fit, bands),
      looks: [
        { title: 'Classes', look: { assets: ['class'] } },
        ...classes.map(({ name }, i) => bandMap(`Probability of ${name}`, i + 1, '0,1')),
      ],
    };
  },
  publish: async (storage, { job, inputs, fit, bands, seconds }) => {
    const { chosen, compared, classes, sizes, rows, tiles, scores, calibration, training } = fit;
    const { id, version } = await storeClassifier(
      storage,
      {
        classifier: chosen.classifier,
        strength: chosen.strength,
        collection: collectionOf(inputs),
        job,
        filter: defaultToRawSource(parseFilter(inputs.filter)),
        tiles,
        bands,
        sizes,
        calibration,
        seconds,
        pixelHeight: pixelHeight({ ...tiles[0], rows }),
        ...(training && { training }),
        classes: classes.map(({ code, name, pixels, squares }) => ({ code, name, pixels, squares })),
        split: splitText(fit, inputs.split),
        labelled: fit.labelled,
        metrics: { validation: scores },
        baseline: Object.fromEntries(
          compared
            .filter(({ classifier }) => isBaseline(classifier) || classifier !== chosen.classifier)
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

function classSections(fit: ClassifyFit, bands: readonly AnalysedBand[]): Section[] {
  const { classes, compared, calibration, bandWeights } = fit;
  const shown = fit.random ?? fit.scores;
  const classOf = (code: number) => classes.find((one) => one.code === code)!;
  return [
    {
      title: 'Accuracy',
      content: html`<p>Overall ${percentText(shown.oa)}${intervalText(shown.oaInterval)}, average ${percentText(shown.aa)}, kappa ${shown.kappa.toFixed(3)}. Intervals are 95 % by bootstrap over squares of ground.</p>${htmlTable(
        columns(
          ['', 'code', 'class'],
          ['labelled', 'scored', 'squares', 'recall', 'precision', 'F1', '95 % interval'],
        ),
        shown.classes.map(({ code, pixels, squares, recall, precision, f1, f1Interval }) => [
          colourKey(code),
          `${code}`,
          classOf(code).name,
          `${classOf(code).pixels}`,
          `${pixels}`,
          `${squares}`,
          ...(pixels > 0 ? [percentText(recall), percentText(precision), f1.toFixed(3)] : ['', '', '']),
          f1Interval ? f1Interval.map((value) => value.toFixed(3)).join(' to ') : 'too few squares',
        ]),
      )}`,
    },
    {
      title: 'Classifiers on ground that did not train them',
      content: htmlTable(
        columns(
          ['classifier'],
          [
            'regularisation',
            'cross entropy',
            'above the least',
            'standard error',
            'overall',
            'average',
            'kappa',
          ],
        ),
        compared.map(({ classifier, strength, entropy, excess, excessError, oa, oaInterval, aa, kappa }) => [
          classifier,
          `${strength}`,
          entropy.toFixed(3),
          excess.toFixed(3),
          excessError?.toFixed(3) ?? '',
          `${percentText(oa)}${intervalText(oaInterval)}`,
          percentText(aa),
          kappa.toFixed(3),
        ]),
      ),
    },
    {
      title: 'Calibration of the probabilities',
      content: html`<p>Expected calibration error ${percentText(calibration.error)}, ${percentText(calibration.uncalibrated)} without the temperatures that other ground supports; temperature of the map ${calibration.temperature.toFixed(2)}.</p>${htmlTable(
        columns([], ['mean largest probability', 'pixels', 'share correct']),
        calibration.bins.map(({ pixels, probability, accuracy }) => [
          percentText(probability),
          `${pixels}`,
          percentText(accuracy),
        ]),
      )}`,
    },
    {
      title: 'Confusion matrix (rows: labels, columns: map)',
      content: htmlTable(
        columns(
          [''],
          shown.classes.map(({ code }) => classOf(code).name),
        ),
        shown.confusion.map((row, i) => [classOf(shown.classes[i].code).name, ...row.map(String)]),
      ),
    },
    ...(bandWeights ? [bandSection(bands, classes, bandWeights)] : []),
    {
      title: 'Mean spectra of the classes',
      content: spectrumChart(
        bands,
        classes.map(({ name, mean }) => ({ name, values: mean })),
      ),
    },
  ];
}

function bandSection(
  bands: readonly AnalysedBand[],
  classes: ClassifyFit['classes'],
  weights: BandWeights,
): Section {
  const curves = weights.flatMap((values, c) => (values ? [{ name: classes[c].name, values }] : []));
  return {
    title: 'Importance of the bands (Grad-CAM)',
    content: html`<p>How much each band raises the score of the class above the score of the second best class. The values are means over the correctly classified pixels of ground that did not train, divided by the largest mean.</p>${spectrumChart(bands, curves)}`,
  };
}

const intervalText = (interval: AccuracyScores['oaInterval']) =>
  interval ? ` (${interval.map(percentText).join(' to ')})` : '';

function splitText({ scores, labelled: { side } }: ClassifyFit, split: SplitKind = 'place'): string {
  const folds =
    split === 'random'
      ? 'random pixels'
      : `${scores.squares} squares of ${side} x ${side} pixels, ${GAP_PX} pixels apart`;
  return `5 folds of ${folds}; then all train`;
}

/** Fewer squares say too little about a class. */
function warningsOf({ classes, scores, labelled: { side } }: ClassifyFit, split: SplitKind): string[] {
  const names = (of: ClassifyFit['classes']) => of.map(({ name }) => name).join(', ');
  const scoredOf = (code: number) => scores.classes.find((one) => one.code === code)!.pixels;
  const unscored = classes.filter(({ code }) => scoredOf(code) === 0);
  const unscoredPixels = classes.reduce(
    (sum, { code, pixels }) => sum + Math.max(0, pixels - scoredOf(code)),
    0,
  );
  const few = classes.filter((one) => one.squares < MIN_UNITS && !unscored.includes(one));
  const fewFields = classes.filter(
    (one) => one.fields < MIN_UNITS && !few.includes(one) && !unscored.includes(one),
  );
  const single = side < SQUARE_SIDES[0];
  return [
    ...(unscored.length > 0
      ? [`${names(unscored)}: not scored, because no other square of ground could train it`]
      : []),
    ...(few.length > 0
      ? [`${names(few)}: poorly supported, by labels in fewer than ${MIN_UNITS} squares of ground`]
      : []),
    ...(fewFields.length > 0
      ? [
          `${fewFields.map(({ name, fields }) => `${name} (${fields})`).join(', ')}: the squares with labels form fewer than ${MIN_UNITS} groups of near ones, perhaps one field each, so the accuracy on other fields is not known`,
        ]
      : []),
    ...(unscoredPixels > 0 ? [`${unscoredPixels} labelled pixels are not scored`] : []),
    ...(single && split === 'place'
      ? [
          `the labels lie in few squares of ${SQUARE_SIDES[0]} x ${SQUARE_SIDES[0]} pixels, so squares of ${side} x ${side} pixels were used; they are similar to their neighbours, which overestimates the accuracy`,
        ]
      : []),
    ...(scores.squares < MIN_UNITS
      ? [`the labels lie in ${scores.squares} squares of ground, too few for intervals`]
      : []),
  ];
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

function trainingText({ engine, precision, epochs, parameters, spectraBytes, gradientBytes }: TrainingFacts) {
  const bytes = `spectra ${megabytes(spectraBytes)}, gradients ${megabytes(gradientBytes)}`;
  const how = epochs === undefined ? '' : `${epochs} epochs with ${engine}, `;
  return `${parameters} weights, ${how}${precision} precision: ${bytes}`;
}
