/** Principal components and minimum noise fractions of a collection. */
import { html, significant } from '../../html/index.js';
import { COUNT, listOf, NUMBER, objectOf } from '../../utils/json-schema.js';
import { type AnalysedCollection, type AnalysisInputs, integer } from '../analysis.js';
import { eigenvalueChart, spectrumChart } from '../charts.js';
import { collectionStatistics } from '../collection-passes.js';
import type { Conclusion, FittedAnalysis, MapAnalysis, MapResults } from '../map-analysis.js';
import { columns, htmlTable, matrixFile } from '../report.js';
import type { BandStatistics } from '../sums.js';
import type { AnalysedBand } from '../tile-spectrum.js';

interface ComponentsInputs extends AnalysisInputs {
  /** Number of components of the maps. */
  components?: number;
}

interface ComponentsFit {
  /** Pixels of the statistics. */
  pixels: number;
  mean: number[];
  /** All eigenvalues, the largest first. */
  eigenvalues: number[];
  /** One row for each component of the maps. */
  weights: number[][];
}

export interface ComponentsResults extends MapResults {
  pixels: number;
  eigenvalues: number[];
  /** Share of the variance that each principal component explains, 0 to 1. */
  shares?: number[];
}

const DEFAULT_COMPONENTS = 10;

const SHARED = {
  properties: {
    components: integer(1, 100, { default: DEFAULT_COMPONENTS, description: 'Number of components' }),
  },
  fit: objectOf({
    pixels: COUNT,
    mean: listOf(NUMBER),
    eigenvalues: listOf(NUMBER),
    weights: listOf(listOf(NUMBER)),
  }),
};

export const pcaProcess: MapAnalysis<ComponentsInputs, ComponentsFit> = {
  ...SHARED,
  name: 'pca',
  title: 'Principal components',
  description:
    'Maps of the principal components of the spectra of a collection, from the covariance over all clear pixels.',
  run: async (analysed, inputs) => {
    const [statistics] = await collectionStatistics(analysed, ['pixels']);
    return fitComponents(analysed, inputs, statistics, 'pc');
  },
  conclude: (fit, _, bands) => {
    const total = fit.eigenvalues.reduce((sum, value) => sum + value, 0);
    return componentsConclusion(fit, bands, 'pc', {
      headings: ['variance', 'share of it'],
      shares: fit.eigenvalues.map((value) => (total > 0 ? value / total : 0)),
    });
  },
};

export const mnfProcess: MapAnalysis<ComponentsInputs, ComponentsFit> = {
  ...SHARED,
  name: 'mnf',
  title: 'Minimum noise fractions',
  description:
    'Maps of the minimum noise fractions of the spectra of a collection: components in the order of their signal-to-noise ratios. The noise is estimated from the differences between neighbouring pixels of rows and columns.',
  run: async (analysed, inputs) => {
    const [pixels, differences] = await collectionStatistics(analysed, ['pixels', 'differences']);
    // The difference of two pixels has the noise of both.
    const noise = differences.covariance.map((value) => value / 2);
    return fitComponents(analysed, inputs, pixels, 'mnf', noise);
  },
  conclude: (fit, _, bands) =>
    componentsConclusion(fit, bands, 'mnf', { headings: ['signal and noise to noise'] }),
};

async function fitComponents(
  { compute }: AnalysedCollection,
  { components = DEFAULT_COMPONENTS }: ComponentsInputs,
  { pixels, mean, covariance }: BandStatistics,
  band: string,
  noise?: Float64Array,
): Promise<FittedAnalysis<ComponentsFit>> {
  const count = Math.min(components, mean.length);
  const { eigenvalues, weights } = await compute({ kind: 'components', covariance, count, noise });
  const rows = Array.from({ length: count }, (_, row) => row);
  return {
    map: {
      method: { kind: 'linear', weights, centre: mean },
      bands: rows.map((row) => `${band}${row + 1}`),
    },
    fit: {
      pixels,
      mean: Array.from(mean),
      eigenvalues: Array.from(eigenvalues),
      weights: rows.map((row) => Array.from(weights.subarray(row * mean.length, (row + 1) * mean.length))),
    },
  };
}

/** Number of components whose weights a report shows. */
const MAX_SHOWN_COMPONENTS = 4;

function componentsConclusion(
  { pixels, mean, eigenvalues, weights }: ComponentsFit,
  bands: AnalysedBand[],
  band: string,
  { headings, shares }: { headings: string[]; shares?: number[] },
): Conclusion {
  const rows = weights.map((_, i) => [
    `${band}${i + 1}`,
    significant(eigenvalues[i]),
    ...(shares ? [`${(100 * shares[i]).toFixed(2)} %`] : []),
  ]);
  const shown = weights
    .slice(0, MAX_SHOWN_COMPONENTS)
    .map((values, i) => ({ name: `${band}${i + 1}`, values }));
  const colours = weights.length >= 3 ? [1, 2, 3] : [1];
  return {
    summary: { pixels, eigenvalues, ...(shares && { shares }) },
    files: { 'components.npy': matrixFile(Float64Array.from(weights.flat()), [weights.length, mean.length]) },
    facts: [`${pixels} pixels`, `${weights.length} components`],
    sections: [
      {
        title: 'Eigenvalues',
        content: html`${eigenvalueChart(eigenvalues, headings[0])}${htmlTable(columns(['component'], headings), rows)}`,
      },
      { title: 'Weights of the first components', content: spectrumChart(bands, shown) },
      { title: 'Mean spectrum', content: spectrumChart(bands, [{ name: 'mean', values: mean }]) },
    ],
    looks: [
      {
        title: colours.length === 3 ? 'Components 1, 2 and 3 as red, green and blue' : 'Component 1',
        look: { bidx: colours },
      },
    ],
  };
}
