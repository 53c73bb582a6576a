/** Bands of another sensor as means of spectrometer bands, weighted by the spectral response of the sensor. */
import { usualStep, wavelengthSteps, widestStep } from './wavelength-gaps.js';

/** A band whose response is a normal distribution; nm. */
export interface SensorBand {
  name: string;
  wavelength: number;
  fwhm: number;
}

/** At larger distances from the centre, the response is below 0.2 % and counts as 0. */
const RESPONSE_REACH_FWHM = 1.5;
/** With fewer bands within the FWHM, the value is interpolated linearly. */
const MIN_BANDS_IN_RESPONSE = 2;

/**
 * Weights of spectrometer bands in a band of a sensor, which sum to one; undefined if the bands do not cover it. `wavelengths`: nm, in any
 * order.
 *
 * The weight of a band is the response 2^-(2 (w - centre) / FWHM)² at its centre w, times the width of the spectrum that it represents:
 * half the distance to the neighbour on either side, in order of wavelength. Overlapping detectors thus do not count twice. If fewer than
 * two bands lie within the FWHM, the value is interpolated linearly between the two bands beside the centre. A sensor's band is covered if
 * its FWHM touches no gap and exceeds the range of the bands by at most half the median step.
 */
export function responseWeights(
  { wavelength: centre, fwhm }: SensorBand,
  wavelengths: readonly number[],
): Float64Array | undefined {
  const order = [...wavelengths.keys()].sort((a, b) => wavelengths[a] - wavelengths[b]);
  const sorted = order.map((band) => wavelengths[band]);
  const steps = wavelengthSteps(sorted);
  const widest = widestStep(steps);
  const low = centre - fwhm / 2;
  const high = centre + fwhm / 2;
  const slack = usualStep(steps) / 2;
  const isWithin = low >= sorted[0] - slack && high <= sorted.at(-1)! + slack;
  const touchesGap = steps.some((step, i) => step > widest && sorted[i] < high && sorted[i + 1] > low);
  const right = sorted.findIndex((value) => value >= centre);
  if (!isWithin || touchesGap || right < 0 || (right === 0 && sorted[0] !== centre)) return undefined;
  const weights = new Float64Array(wavelengths.length);
  if (sorted.filter((value) => value >= low && value <= high).length < MIN_BANDS_IN_RESPONSE) {
    const left = Math.max(0, right - 1);
    const span = sorted[right] - sorted[left];
    const share = span === 0 ? 1 : (centre - sorted[left]) / span;
    weights[order[left]] += 1 - share;
    weights[order[right]] += share;
    return weights;
  }
  const step = (i: number) => Math.min(widest, steps[i] ?? steps[i < 0 ? 0 : steps.length - 1]);
  const raw = sorted.map((value, i) => {
    if (Math.abs(value - centre) > RESPONSE_REACH_FWHM * fwhm) return 0;
    const widths = (2 * (value - centre)) / fwhm;
    return (2 ** -(widths * widths) * (step(i - 1) + step(i))) / 2;
  });
  const total = raw.reduce((sum, value) => sum + value, 0);
  for (const [i, value] of raw.entries()) weights[order[i]] = value / total;
  return weights;
}
