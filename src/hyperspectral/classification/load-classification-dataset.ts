/** Reads the labelled pixels of a job for the fit of classifiers. */
import { requireCollections } from '../../query/index.js';
import { type SplitKind, TRAIN, VALIDATION } from '../class-labels/index.js';
import { type LabelledSums, labelledSums } from '../collection-passes/index.js';
import { fewLabels } from '../errors.js';
import { type AnalysedCollection, DEFAULT_SEED, selectBands } from '../jobs/index.js';
import type { Standardisation } from '../pixel-methods/index.js';
import { NET_SETTINGS, NetSession } from '../spectral-cnn/index.js';
import { gatherTrainingData } from './classification-dataset.js';
import { type ClassifyInputs, requestedNetwork } from './classification-inputs.js';
import type { Fitting } from './fit-classifier.js';

/** Labelled pixels and the codes of their classes, ascending. */
export interface LabelledFitting extends Fitting {
  codes: number[];
}

/**
 * Reads the labelled pixels and passes them to `work`. Throws TW_ANALYSIS_FEW_LABELS, and TW_QUERY_NO_COLLECTION if the collection of
 * labels does not exist.
 */
export async function withTrainingData<T>(
  analysed: AnalysedCollection,
  inputs: ClassifyInputs,
  split: SplitKind,
  work: (fitting: LabelledFitting) => Promise<T>,
): Promise<T> {
  const { labels, seed = DEFAULT_SEED, precision = 'full' } = inputs;
  analysed.job.message('reading labelled pixels');
  if (labels.collection !== undefined)
    await requireCollections(analysed.context.storage, { collections: labels.collection });
  const sums = await labelledSums(analysed, labels, split);
  const codes = codesOf(sums, analysed);
  const pixelsOf = (code: number) => sums.counts.reduce((sum, set) => sum + (set.get(code) ?? 0), 0);
  const labelled = new Map(codes.map((code) => [code, pixelsOf(code)]));
  const of = { labels, split, codes, standard: standardOf(sums), labelled, precision };
  const data = await gatherTrainingData(analysed, of);
  const fitting = { analysed, data, sums, seed, known: new Map(), codes };
  const name = requestedNetwork(inputs);
  if (!name) return work(fitting);
  const session = await NetSession.open(analysed, { name, ...of });
  try {
    return await work({ ...fitting, nets: { session, epochs: inputs.epochs ?? NET_SETTINGS[name].epochs } });
  } finally {
    session.close();
  }
}

/** Throws TW_ANALYSIS_FEW_LABELS if the labels do not suffice for a split. */
export async function checkSplit(
  analysed: AnalysedCollection,
  { labels }: ClassifyInputs,
  split: SplitKind,
): Promise<void> {
  codesOf(await labelledSums(analysed, labels, split), analysed);
}

function codesOf({ counts }: LabelledSums, analysed: AnalysedCollection): number[] {
  const codes = [...new Set(counts.flatMap((set) => [...set.keys()]))].sort((a, b) => a - b);
  if (codes.length < 2) {
    // Unreadable tiles may be the reason that there are no labels.
    const [first] = analysed.counts.failed;
    const why = first ? ` (${analysed.counts.failures} failed: ${first.message})` : '';
    throw fewLabels(`${codes.length} classes have labelled pixels in the tiles${why}`);
  }
  const absent = codes.filter((code) => (counts[TRAIN].get(code) ?? 0) < 2);
  if (absent.length > 0)
    throw fewLabels(`class ${absent.join(', ')} has less than 2 pixels in the squares that train`);
  if (counts[VALIDATION].size === 0) throw fewLabels('no labelled pixel is in the squares for validation');
  return codes;
}

/** Mean and standard deviation of the training pixels. A constant band is only centred. */
function standardOf(sums: LabelledSums): Standardisation {
  const { mean, covariance } = sums.of([TRAIN]);
  const deviation = mean.map((_, band) => Math.sqrt(covariance[band * (mean.length + 1)]) || 1);
  return { centre: mean, deviation };
}

/** Returns the same tiles with the bands in order of wavelength. */
export function sortedByWavelength(analysed: AnalysedCollection): AnalysedCollection {
  const { bands } = analysed;
  return selectBands(
    analysed,
    [...bands.keys()].sort((a, b) => bands[a].wavelength - bands[b].wavelength || a - b),
  );
}
