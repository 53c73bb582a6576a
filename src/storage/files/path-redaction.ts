/** What people hear of files in the data folder: their paths in it, and not where it lies. */
import { join, resolve } from 'node:path';

/** The folders and files that the data folder has of its own. Others may lie beside them where it is a folder of the user. */
const OWN_ENTRIES = 'catalogue|columns|tiles|models|results|scratch|lock|node\\.json';

/** Takes the data folder `dir` out of paths of its own files, in any text of a JSON value; gives a new value. Throws where it is no JSON. */
export function redactDataFolder(dir: string): <T>(value: T) => T {
  const folders = [...new Set([dir, resolve(dir)])].map((one) =>
    join(one, '/').replace(/[.*+?^${}()|[\]\\]/g, '\\$&'),
  );
  const pattern = new RegExp(`(?:${folders.join('|')})(?=(?:${OWN_ENTRIES})\\b)`, 'g');
  const relative = (_: string, value: unknown) =>
    typeof value === 'string' ? value.replace(pattern, '') : value;
  return (value) => (value === undefined ? value : JSON.parse(JSON.stringify(value), relative));
}
