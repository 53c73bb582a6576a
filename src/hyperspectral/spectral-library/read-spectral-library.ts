/** Reads spectral libraries: ENVI, or CSV with a column of wavelengths and one column for each spectrum. */
import { extname } from 'node:path';
import { readEnviLibrary, type SpectralLibrary, toNanometres } from '../../raster/index.js';
import { badLibrary } from '../errors.js';
import { readSmallText, unitInHeading } from '../spectra/index.js';
import { parseCsvLine } from './library-csv-cells.js';

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
