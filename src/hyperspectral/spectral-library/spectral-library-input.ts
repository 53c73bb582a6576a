/** Spectral libraries of requests. */
import { NUMBER, objectOf } from '../../utils/json-schema.js';
import { libraryRange, libraryShape } from '../errors.js';
import type { AnalysedBand } from '../spectrum-reading/index.js';
import { type Library, resampledSpectra, resampleLibrary } from './resample-spectral-library.js';

const MAX_SPECTRA = 100;
const MAX_SAMPLES = 10_000;
/** Far above reflectance, radiance and digital numbers in any unit. Squares of these values are finite in float32. */
const MAX_VALUE = 1e9;
const VALUE = { ...NUMBER, minimum: -MAX_VALUE, maximum: MAX_VALUE };
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
        values: { type: 'array', items: VALUE, maxItems: MAX_SAMPLES },
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
