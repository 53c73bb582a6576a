/**
 * General-purpose functions that know nothing of tiles: bisection, median, order of texts, JSON, random numbers, plurals, system errors,
 * loading of WebAssembly. They import only `errors.ts`. Every part imports the single files, so that a command loads only those it uses.
 */
export {};
