/** Text files with a column of wavelengths. */
import { type ErrorMaker, messageOf } from '../../errors.js';
import { readSmallFile } from '../../raster/index.js';

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
