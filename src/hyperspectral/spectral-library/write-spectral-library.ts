/** Spectral libraries as files. */
import type { AnalysedBand } from '../spectrum-reading/index.js';
import { quoteCsvName } from './library-csv-cells.js';

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
