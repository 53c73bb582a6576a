/**
 * Sensors to whose bands spectra can be resampled. A band of a sensor is the mean of spectrometer bands, weighted by its spectral response.
 * `source`: publication of the numbers.
 */

import { toNanometres } from '../raster/index.js';
import { badSensorFile } from './errors.js';
import { readSmallText, unitInHeading, usualStep, wavelengthSteps, widestStep } from './wavelengths.js';

const bandsOf = (bands: [name: string, wavelength: number, fwhm: number][]): SensorBand[] =>
  bands.map(([name, wavelength, fwhm]) => ({ name, wavelength, fwhm }));

export const SENSORS = {
  'sentinel-2a': {
    title: 'Sentinel-2A MSI',
    source: 'ESA, Sentinel-2 MSI User Guide, spectral bands: central wavelength and bandwidth of S2A',
    bands: bandsOf([
      ['B01', 442.7, 21],
      ['B02', 492.4, 66],
      ['B03', 559.8, 36],
      ['B04', 664.6, 31],
      ['B05', 704.1, 15],
      ['B06', 740.5, 15],
      ['B07', 782.8, 20],
      ['B08', 832.8, 106],
      ['B8A', 864.7, 21],
      ['B09', 945.1, 20],
      ['B10', 1373.5, 31],
      ['B11', 1613.7, 91],
      ['B12', 2202.4, 175],
    ]),
  },
  'landsat-8': {
    title: 'Landsat 8 OLI',
    source: 'Barsi et al. 2014, Remote Sensing 6(10), 10232-10251: band-average centre and FWHM, to the nm',
    bands: bandsOf([
      ['B1', 443, 16],
      ['B2', 482, 60],
      ['B3', 561, 57],
      ['B4', 655, 37],
      ['B5', 865, 28],
      ['B6', 1609, 85],
      ['B7', 2201, 187],
      ['B8', 590, 172],
      ['B9', 1373, 20],
    ]),
  },
};

export type SensorName = keyof typeof SENSORS;
export const SENSOR_NAMES = Object.keys(SENSORS) as SensorName[];

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
 * Weights of the bands of a spectrometer, or of the samples of a library, in a band of a sensor; they sum to one. Undefined if the bands do
 * not cover it. `wavelengths`: nm, in any order.
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
  const beside = interpolationWeights(centre, sorted);
  if (!isWithin || touchesGap || !beside) return undefined;
  const weights = new Float64Array(wavelengths.length);
  if (sorted.filter((value) => value >= low && value <= high).length < MIN_BANDS_IN_RESPONSE) {
    for (const [i, value] of beside.entries()) weights[order[i]] = value;
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

/**
 * Weights of the two samples beside a wavelength for linear interpolation. Undefined if it lies beyond the samples, or between two that are
 * more than `widest` apart. `sorted`: nm, ascending.
 */
export function interpolationWeights(
  wavelength: number,
  sorted: readonly number[],
  widest = Infinity,
): Float64Array | undefined {
  const right = sorted.findIndex((value) => value >= wavelength);
  const left = sorted[right] === wavelength ? right : right - 1;
  if (left < 0 || sorted[right] - sorted[left] > widest) return undefined;
  const share = left === right ? 1 : (wavelength - sorted[left]) / (sorted[right] - sorted[left]);
  const weights = new Float64Array(sorted.length);
  weights[left] = 1 - share;
  weights[right] = share;
  return weights;
}

/** Sensors have at most thousands of bands of some bytes each. */
const MAX_FILE_BYTES = 10e6;

/**
 * Reads one line per band: centre, FWHM, in nm. `warning`: a guess about the unit, for the user. The first line may be a heading, which may
 * name the unit of both, as in `centre (um),fwhm`. Throws TW_ANALYSIS_SENSOR_FILE.
 */
export async function readSensor(
  path: string,
): Promise<{ bands: Omit<SensorBand, 'name'>[]; warning?: string }> {
  const text = await readSmallText(path, MAX_FILE_BYTES, badSensorFile);
  const lines = text
    .split(/\r?\n/)
    .map((line, i) => ({ line, number: i + 1 }))
    .filter(({ line }) => line.trim() !== '');
  const isHeading = Number.isNaN(Number(lines[0]?.line.split(',')[0]));
  const unit = isHeading ? unitInHeading(lines[0]?.line ?? '') : undefined;
  const rows = lines.slice(isHeading ? 1 : 0).map(({ line, number }) => {
    const [centre, fwhm, ...more] = line.split(',').map((cell) => (cell.trim() === '' ? NaN : Number(cell)));
    if (more.length > 0 || !(centre > 0) || !(fwhm > 0))
      throw badSensorFile(path, `line ${number} does not contain a centre and a FWHM above 0`);
    return { centre, fwhm };
  });
  const found =
    rows.length > 0 &&
    toNanometres(
      rows.map(({ centre }) => centre),
      unit,
    );
  if (!found) throw badSensorFile(path, 'its first column does not contain wavelengths');
  const { nanometres, factor, warning } = found;
  const isGuess = unit !== undefined || factor !== 1;
  return {
    bands: nanometres.map((wavelength, i) => ({
      wavelength,
      fwhm: Number((rows[i].fwhm * factor).toPrecision(9)),
    })),
    ...(isGuess && warning !== undefined && { warning }),
  };
}
