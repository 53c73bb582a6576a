/**
 * Child processes that train one cell at a time, and the messages to and from them. Invariant: a process that dies fails only its own cell,
 * after one retry. Imports the folders `adaptation`, `data`, `evaluation`, `learners`, `models`, `patches` and `warm-start` and the part
 * `engines`.
 */
export { readCellDataset } from './train-cell-dataset.js';
export { type CellProgress, type CellResult, TRAINING_WORKER, trainCells } from './train-cell-pool.js';
export type {
  AdaptationStep,
  FineTuneStep,
  TrainCellTask,
  TrainingError,
  TrainingHandlers,
} from './train-cell-task.js';
