/**
 * Concurrency primitives that know nothing of tiles: semaphore, serial queue, concurrent map, periodic task, back-off, worker threads.
 * Invariant: an error reaches the caller of the work that failed and does not stop other work. Imports no other folder.
 */

export {
  backOff,
  mapConcurrent,
  PeriodicTask,
  raceAbort,
  runAllOrAbort,
  runAtOnce,
  runInTurns,
  Semaphore,
  SerialQueue,
  toArray,
} from './concurrency.js';
export { copyToSharedMemory, handleTasks, handleTasksByKind, TaskPool, WorkerPool } from './worker-pool.js';
