import { noSuchTargets } from '../../errors.js';
import { logToStderr } from '../../output/print.js';

export const LIBRARY_FILE_HELP =
  'ENVI spectral library (.sli or .hdr), or CSV with a column of wavelengths and one for each spectrum';

/** A library as requests take it, with the spectra of these names. */
export async function readLibraryInput(path: string, targets: string | undefined): Promise<object> {
  // Only this analysis reads files itself.
  const { readLibrary } = await import('../../../analysis/index.js');
  const { wavelengths, spectra, warning } = await readLibrary(path);
  if (warning !== undefined) logToStderr(`${path}: ${warning}`);
  const names = targets?.split(',').map((name) => name.trim());
  const missing = names?.filter((name) => !spectra.some((one) => one.name === name)) ?? [];
  if (missing.length > 0)
    throw noSuchTargets(
      path,
      missing,
      spectra.map(({ name }) => name),
    );
  const chosen = names ? spectra.filter(({ name }) => names.includes(name)) : spectra;
  return { wavelengths, spectra: chosen };
}
