/** Resamples the spectra of a library to the bands of an instrument. */
import { wavelengthSteps, widestStep } from '../spectra/index.js';
import type { AnalysedBand } from '../spectrum-reading/index.js';

/** A library of a request. Wavelengths are in nm, values in the unit of the collection. */
export interface Library {
  wavelengths: number[];
  spectra: { name: string; values: number[] }[];
}

export interface ResampledLibrary {
  /** Indexes of the bands that the library covers, ascending. */
  bands: number[];
  /** One row per spectrum, with one number for each of these bands. */
  values: Float64Array;
}

/** Full width at half maximum of a normal distribution, in standard deviations. */
const FWHM = 2 * Math.sqrt(2 * Math.log(2));
/** Smallest number of samples within a band for a weighted mean. */
const MIN_SAMPLES = 3;

/**
 * If the library is finer than a band, the value is the mean of its samples weighted by a normal distribution of the band's FWHM; otherwise
 * it is interpolated linearly between the two samples beside the centre. Bands beyond the ends of the library and in its gaps are left out.
 */
export function resampleLibrary(
  { wavelengths, spectra }: Library,
  bands: readonly AnalysedBand[],
): ResampledLibrary {
  const order = [...wavelengths.keys()].sort((a, b) => wavelengths[a] - wavelengths[b]);
  const sorted = order.map((at) => wavelengths[at]);
  const widest = widestStep(wavelengthSteps(sorted));
  const weights = bands.map((band) => weightsOf(band, sorted, widest));
  const covered = [...bands.keys()].filter((band) => weights[band] !== undefined);
  const values = spectra.flatMap((spectrum) =>
    covered.map((band) =>
      weights[band]!.reduce((sum, { at, weight }) => sum + weight * spectrum.values[order[at]], 0),
    ),
  );
  return { bands: covered, values: Float64Array.from(values) };
}

/** The spectra of a library by name, with one value for each band that the library covers. */
export function resampledSpectra(
  { spectra }: Library,
  { bands, values }: ResampledLibrary,
): { name: string; values: Float64Array }[] {
  return spectra.map(({ name }, i) => ({
    name,
    values: values.subarray(i * bands.length, (i + 1) * bands.length),
  }));
}

interface Weight {
  /** Index of a sample, in the order of wavelengths. */
  at: number;
  weight: number;
}

function weightsOf(
  { wavelength, fwhm }: AnalysedBand,
  sorted: number[],
  widest: number,
): Weight[] | undefined {
  const right = sorted.findIndex((value) => value >= wavelength);
  if (right < 0) return undefined;
  if (sorted[right] === wavelength && fwhm === undefined) return [{ at: right, weight: 1 }];
  if (right === 0 && sorted[0] !== wavelength) return undefined;
  const left = Math.max(0, right - 1);
  if (sorted[right] - sorted[left] > widest && sorted[right] !== wavelength) return undefined;
  if (fwhm !== undefined) {
    const inside = [...sorted.keys()].filter((at) => Math.abs(sorted[at] - wavelength) <= fwhm);
    const count = inside.filter((at) => Math.abs(sorted[at] - wavelength) <= fwhm / 2).length;
    if (count >= MIN_SAMPLES) return normal(inside, sorted, wavelength, fwhm / FWHM);
  }
  if (sorted[right] === wavelength) return [{ at: right, weight: 1 }];
  const share = (wavelength - sorted[left]) / (sorted[right] - sorted[left]);
  return [
    { at: left, weight: 1 - share },
    { at: right, weight: share },
  ];
}

function normal(inside: number[], sorted: number[], centre: number, deviation: number): Weight[] {
  const weights = inside.map((at) => Math.exp(-(((sorted[at] - centre) / deviation) ** 2) / 2));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return inside.map((at, i) => ({ at, weight: weights[i] / total }));
}
