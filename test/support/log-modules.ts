/**
 * For `node --import`: writes the URLs of all modules that the process loads, one a line, to the file that the variable MODULE_LOG names.
 * Module hooks run in a thread of their own and do not see `require`, so the modules of CommonJS are written at the exit.
 */
import { appendFileSync } from 'node:fs';
import { createRequire, type LoadHook, register } from 'node:module';
import { pathToFileURL } from 'node:url';
import { isMainThread } from 'node:worker_threads';

const append = (url: string) => appendFileSync(process.env.MODULE_LOG!, `${url}\n`);

export const load: LoadHook = (url, context, next) => {
  append(url);
  return next(url, context);
};

if (isMainThread) {
  register(import.meta.url);
  process.once('exit', () => {
    for (const path of Object.keys(createRequire(import.meta.url).cache)) append(pathToFileURL(path).href);
  });
}
