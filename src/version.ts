import { readFileSync } from 'node:fs';

/** The version of the package. package.json is two folders above the compiled file. */
export const version: string = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
).version;
