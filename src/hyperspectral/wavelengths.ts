/** Wavelengths in nm: gaps between bands, the tags of the bands of maps, and text files with a column of wavelengths. */

import { type ErrorMaker, messageOf } from '../errors.js';
import { commonBandNames } from '../ingest/index.js';
import { readSmallFile, type SpectralTags } from '../raster/index.js';
import type { AnalysedBand } from './tile-spectrum.js';

/** A gap is wider than this multiple of the median step, and wider than `MIN_GAP_NM`. */
const GAP_STEPS = 3;
const MIN_GAP_NM = 20;

/** The median step, nm; 0 if there is none. */
export function usualStep(steps: readonly number[]): number {
  return steps.toSorted((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
}

/** The widest step that is not a gap, nm. */
export function widestStep(steps: readonly number[]): number {
  return Math.max(MIN_GAP_NM, GAP_STEPS * usualStep(steps));
}

/** The steps between consecutive wavelengths of a list, nm. */
export function wavelengthSteps(wavelengths: readonly number[]): number[] {
  return wavelengths.slice(1).map((value, i) => value - wavelengths[i]);
}

/**
 * Indexes of bands in runs without a gap, each run in ascending order of wavelength. A run is a part of the file in which wavelengths only
 * rise or only fall, without a gap. A detector that begins at a shorter wavelength than the end of the previous detector begins a new run.
 */
export function gaplessRuns(wavelengths: readonly number[]): number[][] {
  const steps = wavelengthSteps(wavelengths);
  const widest = widestStep(steps.map(Math.abs));
  const runs: number[][] = [];
  let direction = 0;
  for (const band of wavelengths.keys()) {
    const step = steps[band - 1] ?? 0;
    const isNext =
      step !== 0 && Math.abs(step) <= widest && (direction === 0 || Math.sign(step) === direction);
    if (band > 0 && isNext) {
      runs.at(-1)!.push(band);
      direction = Math.sign(step);
    } else {
      runs.push([band]);
      direction = 0;
    }
  }
  return runs.map((run) => run.toSorted((a, b) => wavelengths[a] - wavelengths[b]));
}

/** Wavelength and FWHM of a band of a map, nm, and its common name. */
export type MapBandTags = SpectralTags & { commonName?: string };

/** Wavelengths and FWHM of bands, nm. */
export function mapSpectralTags(bands: readonly Omit<AnalysedBand, 'name'>[]): MapBandTags[] {
  return bands.map(({ wavelength, fwhm }) => ({ wavelength, ...(fwhm !== undefined && { fwhm }) }));
}

/** The same tags, and the common names that ingest gives to bands of these wavelengths; for maps of reflectance. */
export function mapReflectanceTags(bands: readonly Omit<AnalysedBand, 'name'>[]): MapBandTags[] {
  const tags = mapSpectralTags(bands);
  const names = commonBandNames(tags);
  return tags.map((tag, band) => ({ ...tag, ...(names.has(band) && { commonName: names.get(band)! }) }));
}

/** The text of a file without its byte order mark. Throws `unreadable`. */
export async function readSmallText(
  path: string,
  maxBytes: number,
  unreadable: ErrorMaker<[path: string, what: string]>,
): Promise<string> {
  const bytes = await readSmallFile(path, maxBytes).catch((error) => {
    throw unreadable.because(error, path, messageOf(error));
  });
  return bytes.toString().replace(/^\ufeff/, '');
}

/** The unit in parentheses or brackets, as in `centre (um)`. */
export const unitInHeading = (heading: string): string | undefined =>
  /[([]\s*([^)\]]+)\s*[)\]]/.exec(heading)?.[1];
