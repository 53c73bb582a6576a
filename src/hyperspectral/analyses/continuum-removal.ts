/** Spectra without their continuum, and the depth of absorption features. */
import { COUNT, NUMBER, objectOf } from '../../utils/json-schema.js';
import { type AnalysisInputs, selectBands } from '../analysis.js';
import { spectrumChart } from '../charts.js';
import { emptyRange, reversedRange } from '../errors.js';
import type { MapAnalysis, MapResults } from '../map-analysis.js';
import { continuumRemoval } from '../methods/continuum.js';
import { bandMap } from '../report.js';
import { mapSpectralTags } from '../wavelengths.js';

interface ContinuumInputs extends AnalysisInputs {
  /** Range of wavelengths, nm. Default: all bands. */
  range?: [from: number, to: number];
  /** Make maps of the depth and of its wavelength instead of spectra. */
  depth?: boolean;
}

interface ContinuumFit {
  /** Number of bands outside of the range. */
  outside: number;
}

export interface ContinuumResults extends MapResults, ContinuumFit {
  depth: boolean;
}

/** With fewer bands, no band is below the hull. */
const MIN_BANDS = 3;

export const continuumRemovalProcess: MapAnalysis<ContinuumInputs, ContinuumFit> = {
  name: 'continuum',
  title: 'Continuum removal',
  description:
    'Spectra divided by their upper convex hull over a range of wavelengths, or maps of their largest depth below the hull and its wavelength.',
  properties: {
    range: {
      type: 'array',
      items: NUMBER,
      minItems: 2,
      maxItems: 2,
      description: 'From and to, nm. Default: all bands',
    },
    depth: {
      type: 'boolean',
      default: false,
      description: 'Maps of the largest depth and of its wavelength instead of spectra',
    },
  },
  fit: objectOf({ outside: COUNT }),
  showsSpectra: true,
  check: ({ range }) => {
    if (range && !(range[0] < range[1])) throw reversedRange(...range);
  },
  run: async (agreed, { range, depth = false }) => {
    const [low, high] = range ?? [-Infinity, Infinity];
    const kept = [...agreed.bands.keys()].filter((band) => {
      const { wavelength } = agreed.bands[band];
      return wavelength >= low && wavelength <= high;
    });
    if (kept.length < MIN_BANDS) throw emptyRange(kept.length, range);
    const analysed = selectBands(agreed, kept);
    const { bands } = analysed;
    const wavelengths = Float64Array.from(bands, ({ wavelength }) => wavelength);
    return {
      map: {
        method: { kind: 'continuum', wavelengths, depth },
        ...(depth
          ? { bands: ['depth', 'position'] }
          : { bands: bands.map(({ name }) => name), tags: mapSpectralTags(bands) }),
      },
      analysed,
      fit: { outside: agreed.bands.length - bands.length },
    };
  },
  conclude: (fit, { depth = false }, bands, examples) => {
    const remove = continuumRemoval(bands.map(({ wavelength }) => wavelength));
    const removed = examples.map(({ name, values }) => {
      const spectrum = Float64Array.from(values);
      remove(spectrum);
      return { name, values: spectrum };
    });
    const finite = removed.filter(({ values }) => values.every(Number.isFinite));
    return {
      summary: { ...fit, depth },
      sections: [
        { title: 'Spectra', content: spectrumChart(bands, examples) },
        { title: 'Spectra without their continuum', content: spectrumChart(bands, finite) },
      ],
      looks: depth
        ? [bandMap('Depth below the continuum', 1), bandMap('Wavelength of the deepest band, nm', 2)]
        : [],
    };
  },
};
