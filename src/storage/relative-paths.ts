/** What people hear of files in the data folder: their paths in it, and not where it lies. */
import { join, resolve } from 'node:path';

/** The folders and files that the data folder has of its own. Others may lie beside them where it is a folder of the user. */
const OWN = 'catalogue|columns|tiles|models|results|scratch|lock|node\\.json';

/** Takes the data folder `dir` out of paths of its own files, in any text of a JSON value; gives a new value. */
export function relativePaths(dir: string): <T>(value: T) => T {
  const folders = [...new Set([dir, resolve(dir)])].map((one) =>
    join(one, '/').replace(/[.*+?^${}()|[\]\\]/g, '\\$&'),
  );
  const pattern = new RegExp(`(?:${folders.join('|')})(?=(?:${OWN})\\b)`, 'g');
  const relative = (value: unknown): unknown => {
    if (typeof value === 'string') return value.replace(pattern, '');
    if (Array.isArray(value)) return value.map(relative);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, relative(one)]));
  };
  return <T>(value: T) => relative(value) as T;
}
