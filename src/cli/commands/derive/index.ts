/**
 * Commands that derive tiles and tensors from tiles: fill, split, coalesce, tensor. `cli-main.ts` loads the file of each command. Imports
 * files of a folder above, the folders `options` and `output` and the parts `client` (types), `derive` (types), `html`, `jobs` (types) and
 * `storage` (types).
 */
export { runDerive } from './run-derive-command.js';
