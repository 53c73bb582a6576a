import { noSuchTargets } from '../../errors.js';
import { createOption, splitList } from '../../options/index.js';
import { logToStderr } from '../../output/index.js';

export const LIBRARY_FILE_HELP =
  'ENVI spectral library (.sli or .hdr), or CSV with a column of wavelengths and a column for each spectrum';

export const targetsOption = () =>
  createOption('--targets <names>', 'spectra of the library, separated by commas; default all');

/** The input of a request: the library with the spectra `targets`, by default all. Throws TW_CLI_TARGETS. */
export async function readLibraryInput(path: string, targets: string | undefined): Promise<object> {
  // This import is slow, and only some analyses read a library.
  const { readLibrary } = await import('../../../hyperspectral/index.js');
  const { wavelengths, spectra, warning } = await readLibrary(path);
  if (warning !== undefined) logToStderr(`${path}: ${warning}`);
  const names = targets === undefined ? undefined : splitList(targets);
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
