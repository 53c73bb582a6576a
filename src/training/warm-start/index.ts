/**
 * Copies the weights of another cell's model into a fresh model and adapts batch normalisation and output layers to the cell. Invariant:
 * if a source is refused, the model is unchanged. Imports `evaluation`, `inference`, `patches` and `models`.
 */
export {
  type SourceModelFiles,
  type WarmStartOptions,
  type WarmStartResult,
  warmStart,
} from './warm-start.js';
