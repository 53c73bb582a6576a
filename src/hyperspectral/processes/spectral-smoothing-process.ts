/** Smoothed spectra and their derivatives. */
import { COUNT, listOf, objectOf } from '../../utils/json-schema.js';
import { badSmoothing, shortRuns } from '../errors.js';
import { type AnalysisInputs, integer, selectBands } from '../jobs/index.js';
import { multiplyVector } from '../numeric/index.js';
import { spectrumChart } from '../report/index.js';
import {
  gaplessRuns,
  mapReflectanceTags,
  mapSpectralTags,
  type SmoothingWindow,
  savitzkyGolay,
} from '../spectra/index.js';
import type { MapAnalysis, MapResults } from '../spectral-maps/index.js';
import type { AnalysedBand } from '../spectrum-reading/index.js';

export interface SmoothInputs extends AnalysisInputs, Partial<SmoothingWindow> {}

interface SmoothFit {
  /** Number of bands of each run, in the order of the bands. */
  runs: number[];
  /** Number of bands in runs that are shorter than the window. */
  leftOut: number;
}

export interface SmoothResults extends MapResults, SmoothFit, SmoothingWindow {}

const DEFAULTS: SmoothingWindow = { window: 7, order: 2, derivative: 0 };
/** Higher powers of wavelengths are nearly collinear. */
const MAX_ORDER = 5;
const MAX_WINDOW = 101;
const UNITS = ['', '1/nm', '1/nm²'];

export const spectralSmoothingProcess: MapAnalysis<SmoothInputs, SmoothFit> = {
  name: 'smooth',
  title: 'Smoothed spectra',
  description:
    'Spectra smoothed by polynomials (Savitzky-Golay), or their first or second derivative per nm, at the wavelengths of the bands, within runs of bands without a jump or a gap.',
  properties: {
    window: integer(3, MAX_WINDOW, {
      default: DEFAULTS.window,
      description: 'Bands of a window, an odd number',
    }),
    order: integer(0, MAX_ORDER, { default: DEFAULTS.order, description: 'Order of the polynomial' }),
    derivative: integer(0, 2, { default: DEFAULTS.derivative }),
  },
  fit: objectOf({ runs: listOf(COUNT), leftOut: COUNT }),
  check: (inputs) => {
    const { window, order, derivative } = windowOf(inputs);
    if (window % 2 === 0 || window <= order || order < derivative)
      throw badSmoothing(window, order, derivative);
  },
  showsSpectra: true,
  run: async (agreed, inputs) => {
    const window = windowOf(inputs);
    const all = gaplessRuns(agreed.bands.map(({ wavelength }) => wavelength));
    const kept = all.filter(({ length }) => length >= window.window);
    if (kept.length === 0) throw shortRuns(window.window, Math.max(...all.map(({ length }) => length)));
    const analysed = selectBands(
      agreed,
      kept.flat().toSorted((a, b) => a - b),
    );
    const { bands } = analysed;
    const runs = kept.map(({ length }) => length);
    const tags = window.derivative === 0 ? mapReflectanceTags(bands) : mapSpectralTags(bands);
    return {
      map: {
        method: {
          kind: 'linear',
          weights: smoothingWeights(bands, runs, window),
          centre: new Float64Array(bands.length),
        },
        bands: bands.map(({ name }) => name),
        tags,
      },
      analysed,
      fit: { runs, leftOut: agreed.bands.length - bands.length },
    };
  },
  conclude: (fit, inputs, bands, examples) => {
    const window = windowOf(inputs);
    const weights = smoothingWeights(bands, fit.runs, window);
    const made = examples.map(({ name, values }) => ({ name, values: multiplyVector(weights, values) }));
    const { derivative } = window;
    return {
      summary: { ...window, ...fit },
      facts: [
        `window of ${window.window} bands, polynomials of order ${window.order}`,
        derivative === 0 ? 'smoothed' : `derivative ${derivative}`,
      ],
      sections: [
        { title: 'Spectra', content: spectrumChart(bands, examples) },
        {
          title: derivative === 0 ? 'Smoothed spectra' : `Derivative ${derivative}`,
          content: spectrumChart(bands, made, UNITS[derivative]),
        },
      ],
    };
  },
};

function windowOf({
  window = DEFAULTS.window,
  order = DEFAULTS.order,
  derivative = DEFAULTS.derivative,
}: SmoothInputs): SmoothingWindow {
  return { window, order, derivative };
}

/** Weights of bands x bands, row by row. `runs`: the number of bands of each run, which is smoothed separately. */
function smoothingWeights(
  bands: readonly AnalysedBand[],
  runs: readonly number[],
  window: SmoothingWindow,
): Float64Array {
  const size = bands.length;
  const weights = new Float64Array(size * size);
  let first = 0;
  for (const length of runs) {
    const run = Array.from({ length }, (_, i) => first + i).sort(
      (a, b) => bands[a].wavelength - bands[b].wavelength,
    );
    const own = savitzkyGolay(
      run.map((band) => bands[band].wavelength),
      window,
    );
    for (const [i, to] of run.entries())
      for (const [j, from] of run.entries()) weights[to * size + from] = own[i * length + j];
    first += length;
  }
  return weights;
}
