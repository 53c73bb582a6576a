/**
 * Commands that derive tiles and tensors from tiles: fill, split, coalesce, tensor. `main.ts` loads the file of each command. Imports types
 * of `derive`.
 */
export { runDerive } from './run-derive-command.js';
