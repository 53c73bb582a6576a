/** Maps of the similarity of pixels to the spectra of a library. */
import { COUNT, NUMBER, objectOf } from '../../utils/json-schema.js';
import { type AnalysisInputs, selectBands } from '../analysis.js';
import { spectrumChart } from '../charts.js';
import { collectionStatistics } from '../collection-passes.js';
import { libraryShape } from '../errors.js';
import {
  checkLibrary,
  coveredBands,
  LIBRARY,
  type Library,
  resampledSpectra,
  resampleLibrary,
} from '../library.js';
import { multiplyVector } from '../linear-algebra.js';
import type { FittedAnalysis, MapAnalysis, MapResults } from '../map-analysis.js';
import { MIN_DIVERGENCE_VALUE, type PixelMethod } from '../methods/methods.js';
import { bandMap, colourKey, columns, covarianceFacts, htmlTable } from '../report.js';

const MATCH_METHODS = ['sam', 'sid', 'mf', 'ace'] as const;
type MatchMethod = (typeof MATCH_METHODS)[number];

export interface MatchInputs extends AnalysisInputs {
  library: Library;
  method?: MatchMethod;
  /** Pixels that are not better than this have no class. Radians for `sam`, the value of the map for other methods. */
  threshold?: number;
}

interface MatchFit {
  /** Bands that the library does not cover. */
  uncovered: number;
  /** Pixels of the statistics, for `mf` and `ace`. */
  pixels?: number;
  /** Share of the mean variance that was added to the diagonal of the covariance, for `mf` and `ace`. */
  loading?: number;
}

export interface MatchResults extends MapResults, MatchFit {
  method: MatchMethod;
  /** Code in the group `class`, and number of the band. */
  targets: { code: number; name: string }[];
}

/** Spectra and maps in a report. */
const MAX_SHOWN_SPECTRA = 8;
const MAX_SHOWN_MAPS = 4;

export const spectralMatchingProcess: MapAnalysis<MatchInputs, MatchFit> = {
  name: 'match',
  title: 'Spectral matching',
  description:
    'Maps of how well the spectrum of each pixel matches each spectrum of a library, and of the best match: spectral angle (sam), spectral information divergence (sid), matched filter (mf) or adaptive coherence estimator (ace).',
  properties: {
    library: LIBRARY,
    method: { enum: MATCH_METHODS, default: 'sam' },
    threshold: {
      ...NUMBER,
      description:
        'Pixels that are not better have no class. Radians for sam, the value of the map for other methods',
    },
  },
  required: ['library'],
  fit: objectOf({ uncovered: COUNT }, { pixels: COUNT, loading: NUMBER }),
  check: ({ library }) => checkLibrary(library),
  run: async (analysed, { library, method = 'sam', threshold }) => {
    const bands = coveredBands(library, analysed.bands);
    const used = selectBands(analysed, bands);
    const resampled = resampleLibrary(library, used.bands);
    if (method === 'sid') requirePositive(resampledSpectra(library, resampled));
    const { values } = resampled;
    const limit = threshold ?? (method === 'mf' || method === 'ace' ? 0 : undefined);
    const map = {
      bands: bandNames(library),
      classes: {
        best: method === 'sam' || method === 'sid' ? ('least' as const) : ('most' as const),
        codes: library.spectra.map((_, i) => i + 1),
        names: library.spectra.map(({ name }) => name),
        // A pixel that matches no target has no class.
        ...(limit !== undefined && { threshold: limit }),
      },
    };
    const uncovered = analysed.bands.length - bands.length;
    const fitted = (of: PixelMethod, fit: object = {}): FittedAnalysis<MatchFit> => ({
      map: { method: of, ...map },
      analysed: used,
      fit: { uncovered, ...fit },
    });
    if (method === 'sam') return fitted({ kind: 'angle', targets: values });
    if (method === 'sid') return fitted({ kind: 'divergence', targets: values });
    const [statistics] = await collectionStatistics(used, ['pixels']);
    const { mean, covariance, pixels } = statistics;
    const { whitening, loading } = await analysed.compute({ kind: 'whitening', covariance, pixels });
    const of = method === 'mf' ? matchedFilter(whitening, mean, values) : coherence(whitening, mean, values);
    return fitted(of, { pixels, loading });
  },
  conclude: (fit, { library, method = 'sam', threshold }, bands) => {
    const curves = resampledSpectra(library, resampleLibrary(library, bands));
    const codes = library.spectra.map(({ name }, i) => [colourKey(i + 1), `${i + 1}`, name]);
    const limit = threshold === undefined ? [] : [`threshold ${threshold}`];
    return {
      summary: { ...fit, method, targets: library.spectra.map(({ name }, i) => ({ code: i + 1, name })) },
      facts: [method, ...limit, ...covarianceFacts(fit)],
      sections: [
        {
          title: 'Spectra of the library',
          content: spectrumChart(bands, curves.slice(0, MAX_SHOWN_SPECTRA)),
        },
        {
          title: 'Codes of the group class',
          content: htmlTable(columns(['', 'code', 'target'], []), codes),
        },
      ],
      looks: [
        { title: 'Best spectrum', look: { assets: ['class'] } },
        ...curves.slice(0, MAX_SHOWN_MAPS).map(({ name }, i) => bandMap(name, i + 1)),
      ],
    };
  },
};

/** Throws TW_ANALYSIS_LIBRARY_SPECTRUM for a spectrum that the divergence would treat as constant. */
function requirePositive(spectra: { name: string; values: Float64Array }[]): void {
  for (const { name, values } of spectra)
    if (values.every((value) => value <= MIN_DIVERGENCE_VALUE))
      throw libraryShape(
        name,
        `sid needs a value above ${MIN_DIVERGENCE_VALUE}, and it has none at the bands`,
      );
}

/** Names of bands are unique and not numbers. */
function bandNames({ spectra }: Library): string[] {
  return spectra.map(({ name }, i) => `${i + 1} ${name}`);
}

/** The whitened difference of each target from the mean. */
function whitened(whitening: Float64Array, mean: Float64Array, targets: Float64Array): Float64Array[] {
  const size = mean.length;
  return Array.from({ length: targets.length / size }, (_, row) => {
    const target = targets.subarray(row * size, (row + 1) * size);
    return multiplyVector(
      whitening,
      target.map((value, band) => value - mean[band]),
    );
  });
}

function coherence(whitening: Float64Array, mean: Float64Array, targets: Float64Array): PixelMethod {
  const rows = whitened(whitening, mean, targets);
  return {
    kind: 'coherence',
    whitening,
    centre: mean,
    targets: Float64Array.from(rows.flatMap((row) => [...row])),
  };
}

/** (t - m)' C^-1 (x - m) / (t - m)' C^-1 (t - m): 1 for the target, 0 for the mean (Eismann 2012, 14.2). */
function matchedFilter(whitening: Float64Array, mean: Float64Array, targets: Float64Array): PixelMethod {
  const size = mean.length;
  const weights = whitened(whitening, mean, targets).flatMap((row) => {
    const square = row.reduce((sum, value) => sum + value * value, 0);
    return Array.from({ length: size }, (_, band) => {
      let sum = 0;
      for (let k = band; k < size; k++) sum += whitening[k * size + band] * row[k];
      return sum / square;
    });
  });
  return { kind: 'linear', weights: Float64Array.from(weights), centre: mean };
}
