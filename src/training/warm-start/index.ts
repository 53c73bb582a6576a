/**
 * Copies the weights of another cell's model into a fresh model and adapts batch normalisation and output layers to the cell. Invariant: if
 * a source is refused, the model is unchanged. Imports files of a folder above, the folders `evaluation`, `inference`, `models` and
 * `patches` and the parts `engines` (types) and `storage`.
 */
export {
  readSourceWeights,
  type SourceModelFiles,
  type WarmStartOptions,
  type WarmStartResult,
  warmStart,
} from './warm-start.js';
