/** Libraries that come with a request. */
import { NUMBER, objectOf } from '../../json-schema.js';
import { libraryRange, libraryShape } from '../errors.js';
import type { AnalysedBand } from '../tiles/spectral-tile.js';
import { type Library, resampleLibrary } from './resample-library.js';

const MOST_SPECTRA = 100;
const MOST_SAMPLES = 10_000;
/** With a smaller share of the bands, spectra say little. */
const SMALLEST_SHARE = 0.5;

/** JSON Schema of a library. */
export const LIBRARY = {
  ...objectOf({
    wavelengths: {
      ...{ type: 'array', items: NUMBER, minItems: 2, maxItems: MOST_SAMPLES },
      description: 'Nanometres',
    },
    spectra: {
      type: 'array',
      items: objectOf({
        name: { type: 'string', minLength: 1, maxLength: 200 },
        values: { type: 'array', items: NUMBER, maxItems: MOST_SAMPLES },
      }),
      minItems: 1,
      maxItems: MOST_SPECTRA,
    },
  }),
  description: 'Spectra in the unit of the collection, reflectance mostly; resampled to its bands',
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

/** Indexes of the bands that a library covers, ascending. Throws TW_ANALYSIS_LIBRARY_RANGE if these are less than half. */
export function coveredBands(library: Library, bands: AnalysedBand[]): number[] {
  const covered = resampleLibrary(library, bands).bands;
  if (covered.length < 2 || covered.length < SMALLEST_SHARE * bands.length)
    throw libraryRange(library.wavelengths, covered.length, bands);
  return covered;
}
