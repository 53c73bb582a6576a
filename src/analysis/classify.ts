/** Maps of classes from labels. */
import { html } from '../html/index.js';
import type { JobContext } from '../jobs/index.js';
import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../json-schema.js';
import type { Analysed, AnalysisContext } from './analysis-run.js';
import { type ClassStatistics, confusionTables, labelledSums } from './class-statistics.js';
import { fewLabels } from './errors.js';
import type { AnalysisInputs } from './inputs.js';
import { checkLabels, LABELS, type Labels } from './labels/labels.js';
import { type Scores, scoresOf } from './labels/scores.js';
import type { SplitKind } from './labels/split.js';
import type { MapAnalysis, MapResults } from './map-process.js';
import { type Discriminant, discriminant, withinClasses } from './pixels/discriminant.js';
import { spectrumChart } from './report/charts.js';
import { colourKey, tableOf } from './report/report.js';

export interface ClassifyInputs extends AnalysisInputs {
  labels: Labels;
  /** Unit of the split into training and validation: squares of 32 x 32 pixels, or single pixels. */
  split?: SplitKind;
}

interface ClassifyFit {
  classes: { code: number; name: string; train: number; validation: number; mean: number[] }[];
  shrinkage: number;
  scores: Scores;
  /** Scores of the random split, if that was asked for. */
  random?: Scores;
}

export interface ClassifyResults extends MapResults, Scores {
  classifier: 'lda';
  shrinkage: number;
  split: SplitKind;
  names: Record<string, string>;
  /** Overall accuracy by place, if the split was random: the difference is what the random one overestimates. */
  oaByPlace?: number;
}

/** Numbers of `SETS`. */
const [TRAIN, TUNE, VALIDATION] = [0, 1, 2];
/** Candidates that are compared on the tuning pixels. With more candidates than these few pixels can tell apart, chance would choose. */
const SHRINKAGES = [1e-3, 1e-2, 0.1];

const SCORES = objectOf({
  ...{ pixels: COUNT, oa: NUMBER, aa: NUMBER, kappa: NUMBER, confusion: listOf(listOf(COUNT)) },
  classes: listOf(objectOf({ code: COUNT, pixels: COUNT, recall: NUMBER, precision: NUMBER, f1: NUMBER })),
});

export const classify: MapAnalysis<ClassifyInputs, ClassifyFit> = {
  name: 'classify',
  title: 'Classification',
  description:
    'Maps of classes and of their probabilities, by linear discriminant analysis with shrinkage, from labelled pixels. It is validated on squares of ground that it has not seen.',
  properties: {
    labels: LABELS,
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
      shrinkage: NUMBER,
      scores: SCORES,
    },
    { random: SCORES },
  ),
  check: ({ labels }) => checkLabels(labels),
  run: async (context, analysed, { labels, split = 'place' }, job) => {
    job.message('reading labelled pixels');
    const byPlace = await trained(context, analysed, labels, 'place', job);
    const random = split === 'random' ? await trained(context, analysed, labels, 'random', job) : undefined;
    const { codes, all, shrinkage, scores, counts } = byPlace;
    // The map takes all labelled pixels.
    const { weights, bias } = discriminant(withinClasses(all, all.classes), all.mean, all.classes, shrinkage);
    const nameOf = (code: number) => labels.names?.[code] ?? `class ${code}`;
    return {
      map: {
        method: { kind: 'probabilities', weights, bias, centre: all.mean },
        bands: codes.map((code) => `${code} ${nameOf(code)}`),
        classes: { best: 'most', codes },
      },
      fit: {
        classes: all.classes.map(({ code, mean }) => ({
          ...{ code, name: nameOf(code), mean: Array.from(mean) },
          train: (counts[TRAIN]!.get(code) ?? 0) + (counts[TUNE]!.get(code) ?? 0),
          validation: counts[VALIDATION]!.get(code) ?? 0,
        })),
        ...{ shrinkage, scores },
        ...(random && { random: random.scores }),
      },
    };
  },
  conclude: ({ classes, shrinkage, scores, random }, { split = 'place' }, bands) => {
    const wavelengths = bands.map(({ wavelength }) => wavelength);
    const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
    const shown = random ?? scores;
    const title = (code: number) => classes.find((one) => one.code === code)!.name;
    const overestimate = random && [
      `by place the overall accuracy is ${percent(scores.oa)}, so the random split overestimates it by ${(100 * (random.oa - scores.oa)).toFixed(1)} points`,
    ];
    return {
      summary: {
        ...{ classifier: 'lda', split, shrinkage, ...shown },
        names: Object.fromEntries(classes.map(({ code, name }) => [code, name])),
        ...(random && { oaByPlace: scores.oa }),
      },
      files: {},
      facts: [
        `linear discriminants, shrinkage ${shrinkage}`,
        `overall accuracy ${percent(shown.oa)} on ${shown.pixels} pixels ${random ? 'at random' : 'of ground that did not train'}`,
        ...(overestimate ?? []),
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
          title: 'Confusion: labels by rows, the map by columns',
          content: tableOf(
            [{ name: '' }, ...shown.classes.map(({ code }) => ({ name: title(code), isNumber: true }))],
            shown.confusion.map((row, i) => [title(shown.classes[i]!.code), ...row.map(String)]),
          ),
        },
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
};

interface Trained {
  codes: number[];
  /** Statistics of all labelled pixels. */
  all: ClassStatistics;
  shrinkage: number;
  /** Scores on the validation pixels of a classifier that all other pixels have trained. */
  scores: Scores;
  counts: Map<number, number>[];
}

/** Chooses the shrinkage on the pixels for tuning, and validates on those that had no part in it. Throws TW_ANALYSIS_FEW_LABELS. */
async function trained(
  context: AnalysisContext,
  analysed: Analysed,
  labels: Labels,
  split: SplitKind,
  job: JobContext,
): Promise<Trained> {
  const sums = await labelledSums(context, analysed, labels, split, job);
  const { counts } = sums;
  const codes = [...new Set(counts.flatMap((set) => [...set.keys()]))].sort((a, b) => a - b);
  const lacking = [TRAIN, TUNE, VALIDATION].map((set) => counts[set!]!.size);
  if (codes.length < 2) throw fewLabels(`${codes.length} classes have labelled pixels in the tiles`);
  const absent = codes.filter((code) => (counts[TRAIN!]!.get(code) ?? 0) < 2);
  if (absent.length > 0)
    throw fewLabels(`of class ${absent.join(', ')} less than 2 pixels are in the squares that train`);
  if (lacking[VALIDATION!] === 0) throw fewLabels('no labelled pixel is in the squares for validation');
  const score = async (set: number, of: ClassStatistics, shrinkages: readonly number[]) => {
    const within = withinClasses(of, of.classes);
    const classifiers: Discriminant[] = shrinkages.map((one) =>
      discriminant(within, of.mean, of.classes, one),
    );
    const tables = await confusionTables(
      ...([context, analysed, { labels, split }] as const),
      { set, codes: of.classes.map(({ code }) => code), centre: of.mean, classifiers },
      job,
    );
    return tables.map((table) =>
      scoresOf(
        table,
        of.classes.map(({ code }) => code),
      ),
    );
  };
  const tuned = await score(TUNE!, sums.of([TRAIN!]), SHRINKAGES);
  // If several are equal, take the largest: it relies least on the covariance.
  const best = tuned.reduce((most, { oa }, i) => (oa >= tuned[most]!.oa ? i : most), 0);
  const shrinkage = SHRINKAGES[best]!;
  const [scores] = await score(VALIDATION!, sums.of([TRAIN!, TUNE!]), [shrinkage]);
  return { codes, all: sums.of([TRAIN!, TUNE!, VALIDATION!]), shrinkage, scores: scores!, counts };
}
