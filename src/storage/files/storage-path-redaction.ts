/** Removes the path of the data folder from texts that users of a server see. */
import { join, resolve } from 'node:path';

/** Entries of a data folder that tilewright creates. The folder may be one of the user's, with other entries. */
const OWN_ENTRIES = 'catalogue|columns|tiles|models|results|scratch|lock|node\\.json';

/**
 * Returns a function that makes paths below the data folder `dir` relative, in all texts of a JSON value, and returns a new
 * value. It throws if the value is not JSON.
 */
export function redactDataFolder(dir: string): <T>(value: T) => T {
  const folders = [...new Set([dir, resolve(dir)])].map((one) =>
    join(one, '/').replace(/[.*+?^${}()|[\]\\]/g, '\\$&'),
  );
  const pattern = new RegExp(`(?:${folders.join('|')})(?=(?:${OWN_ENTRIES})\\b)`, 'g');
  const relative = (_: string, value: unknown) =>
    typeof value === 'string' ? value.replace(pattern, '') : value;
  return (value) => (value === undefined ? value : JSON.parse(JSON.stringify(value), relative));
}
