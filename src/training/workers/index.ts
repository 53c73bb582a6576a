/**
 * Child processes that train one cell at a time, and the messages to and from them. Invariant: a process that dies fails only its own
 * cell, after one retry. Imports `loop`, `warm-start`, `evaluation`, `patches`, `models` and `data`.
 */
export type { TrainCellTask, TrainingError } from './training-messages.js';
export { type CellProgress, type CellResult, trainCells } from './training-pool.js';
