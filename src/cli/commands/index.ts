/**
 * The commands, one per file. `main.ts` loads each by its file name, so that a command does not load the code of the others; this file
 * therefore exports nothing. Imports `cli/options`, `cli/output`, `client`, and types of the parts.
 */
export {};
