/** Spectral libraries: the input of a request, ENVI and CSV files, and resampling to the bands of an instrument. */

import { extname } from 'node:path';
import { readEnviLibrary, type SpectralLibrary, toNanometres } from '../raster/index.js';
import { NUMBER, objectOf } from '../utils/json-schema.js';
import { badLibrary, libraryRange, libraryShape } from './errors.js';
import { interpolationWeights, responseWeights } from './sensors.js';
import type { AnalysedBand } from './tile-spectrum.js';
import { readSmallText, unitInHeading, wavelengthSteps, widestStep } from './wavelengths.js';

/** A library of a request. Wavelengths are in nm, values in the unit of the collection. */
export interface Library {
  wavelengths: number[];
  spectra: { name: string; values: number[] }[];
}

interface ResampledLibrary {
  /** Indexes of the bands that the library covers, ascending. */
  bands: number[];
  /** One row per spectrum, with one number for each of these bands. */
  values: Float64Array;
}

/**
 * A band with an FWHM gets the weights of `responseWeights` if the library covers the FWHM. Other values are interpolated linearly between
 * the two samples beside the centre. Bands beyond the ends of the library and in its gaps are left out.
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
  { name, wavelength, fwhm }: AnalysedBand,
  sorted: number[],
  widest: number,
): Weight[] | undefined {
  const response = fwhm === undefined ? undefined : responseWeights({ name, wavelength, fwhm }, sorted);
  const weights = response ?? interpolationWeights(wavelength, sorted, widest);
  return weights && [...weights].flatMap((weight, at) => (weight === 0 ? [] : { at, weight }));
}

const MAX_SPECTRA = 100;
const MAX_SAMPLES = 10_000;
/** Far above reflectance, radiance and digital numbers in any unit. Squares of these values are finite in float32. */
const MAX_VALUE = 1e9;
const VALUE_SCHEMA = { ...NUMBER, minimum: -MAX_VALUE, maximum: MAX_VALUE };
/** With a smaller share of the bands, comparisons of spectra are not meaningful. */
const MIN_COVERED_FRACTION = 0.5;

/** JSON Schema of a library. */
export const LIBRARY = {
  ...objectOf({
    wavelengths: {
      type: 'array',
      items: NUMBER,
      minItems: 2,
      maxItems: MAX_SAMPLES,
      description: 'Nanometres',
    },
    spectra: {
      type: 'array',
      items: objectOf({
        name: { type: 'string', minLength: 1, maxLength: 200 },
        values: { type: 'array', items: VALUE_SCHEMA, maxItems: MAX_SAMPLES },
      }),
      minItems: 1,
      maxItems: MAX_SPECTRA,
    },
  }),
  description: 'Spectra in the unit of the collection, usually reflectance; they are resampled to its bands',
};

/** Throws TW_ANALYSIS_LIBRARY_SPECTRUM. */
export function checkLibrary({ wavelengths, spectra }: Library): void {
  for (const { name, values } of spectra) {
    if (values.length !== wavelengths.length)
      throw libraryShape(
        name,
        `it has ${values.length} values, and there are ${wavelengths.length} wavelengths`,
      );
    if (values.every((value) => value === 0)) throw libraryShape(name, 'all of its values are 0');
  }
}

/**
 * Indexes of the bands that a library covers, ascending. Throws TW_ANALYSIS_LIBRARY_RANGE if it covers less than half of the bands, and
 * TW_ANALYSIS_LIBRARY_SPECTRUM if a spectrum is zero or too large in them.
 */
export function coveredBands(library: Library, bands: AnalysedBand[]): number[] {
  const resampled = resampleLibrary(library, bands);
  const { bands: covered } = resampled;
  if (covered.length < 2 || covered.length < MIN_COVERED_FRACTION * bands.length)
    throw libraryRange(library.wavelengths, covered.length, bands);
  for (const { name, values } of resampledSpectra(library, resampled)) {
    const norm = Math.fround(Math.sqrt(values.reduce((sum, value) => sum + value * value, 0)));
    if (norm === 0) throw libraryShape(name, 'its values at the bands of the collection are all 0');
    if (!Number.isFinite(norm))
      throw libraryShape(name, 'its values at the bands of the collection are too large');
  }
  return covered;
}

/** Text that spreadsheets interpret as a formula. They do not interpret text after an apostrophe. */
const FORMULA = /^[\s']*[=+\-@]/;
const MARKED_FORMULA = /^'(?=[\s']*[=+\-@])/;

/** The name of a spectrum as a cell. `parseCsvLine` returns it with spaces instead of control characters and line breaks. */
function quoteCsvName(name: string): string {
  const line = name.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ');
  const text = FORMULA.test(line) ? `'${line}` : line;
  return /[",]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * The cells of a line (RFC 4180; a cell cannot contain line breaks), without quotes and without the apostrophe before text that looks like
 * a formula.
 */
function parseCsvLine(line: string): string[] {
  const cells = line.match(/(?<=^|,)("(?:[^"]|"")*"|[^,]*)(?=,|$)/g) ?? [];
  return cells.map((cell) =>
    cell
      .trim()
      .replace(/^"(.*)"$/s, '$1')
      .replaceAll('""', '"')
      .replace(MARKED_FORMULA, ''),
  );
}

/** A larger file does not fit into a request. */
const MAX_FILE_BYTES = 50e6;

/** Returns values as reflectance, 0 to 1. Throws TW_ANALYSIS_LIBRARY and the errors of rasters. */
export async function readLibrary(path: string): Promise<SpectralLibrary> {
  const isText = /^\.(csv|txt)$/i.test(extname(path));
  return scaled(isText ? await readCsv(path) : await readEnviLibrary(path), path);
}

async function readCsv(path: string): Promise<SpectralLibrary> {
  const text = await readSmallText(path, MAX_FILE_BYTES, badLibrary);
  const [heading, ...rows] = text
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
    .map(parseCsvLine);
  const names = (heading ?? []).slice(1);
  if (names.length === 0 || rows.length === 0)
    throw badLibrary(
      path,
      'it needs a heading with a name for each spectrum, and a line for each wavelength',
    );
  const numbers = rows.map((cells, i) => {
    const values = cells.map((cell) => (cell === '' ? NaN : Number(cell)));
    if (values.length !== names.length + 1 || !values.every(Number.isFinite))
      throw badLibrary(path, `line ${i + 2} does not contain ${names.length + 1} numbers`);
    return values;
  });
  const unit = unitInHeading(heading[0]);
  const spectrum = toNanometres(
    numbers.map(([wavelength]) => wavelength),
    unit,
  );
  if (!spectrum) throw badLibrary(path, 'its first column does not contain wavelengths');
  return {
    wavelengths: spectrum.nanometres,
    spectra: names.map((name, i) => ({ name, values: numbers.map((row) => row[i + 1]) })),
    isScaled: false,
    ...(unit !== undefined && spectrum.warning !== undefined && { warning: spectrum.warning }),
  };
}

/** Converts values to reflectance: libraries use shares, percent or ten thousandths. */
function scaled(library: SpectralLibrary, path: string): SpectralLibrary {
  const { spectra, isScaled } = library;
  const fold = (of: (a: number, b: number) => number) =>
    spectra.reduce((all, { values }) => values.reduce((a, b) => of(a, b), all), 0);
  const largest = fold(Math.max);
  if (!spectra.every(({ values }) => values.every(Number.isFinite)))
    throw badLibrary(path, 'it contains values that are not numbers');
  // Libraries mark deleted channels by large negative values; those of the USGS use -1.23e34.
  const lowest = fold(Math.min);
  if (lowest < -Math.max(largest, 1))
    throw badLibrary(
      path,
      `it contains ${lowest}, which is not a reflectance; leave out the channels without data`,
    );
  const scale = isScaled || largest <= 2 ? 1 : largest <= 200 ? 1e-2 : 1e-4;
  if (scale === 1) return library;
  const unit = scale === 1e-2 ? 'percent' : 'ten thousandths';
  const guess = `values up to ${Number(largest.toPrecision(4))} are taken as ${unit} of reflectance`;
  return {
    ...library,
    spectra: spectra.map(({ name, values }) => ({ name, values: values.map((value) => value * scale) })),
    warning: [library.warning, guess].filter(Boolean).join('; '),
  };
}

/** Returns a CSV file for `readLibrary`: a column of wavelengths in nm, and one column per spectrum with one value per band. */
export function libraryCsv(
  spectra: readonly { name: string; spectrum: readonly number[] }[],
  bands: readonly AnalysedBand[],
): Buffer {
  const heading = ['wavelength (nm)', ...spectra.map(({ name }) => quoteCsvName(name))];
  const rows = bands.map(({ wavelength }, band) => [
    wavelength,
    ...spectra.map(({ spectrum }) => spectrum[band]),
  ]);
  return Buffer.from(`${[heading, ...rows].map((cells) => cells.join()).join('\n')}\n`);
}
