/**
 * Concurrency primitives that know nothing of tiles: semaphore, serial queue, concurrent map, periodic task, back-off, worker threads.
 * Invariant: an error reaches the caller of the work that failed and does not stop other work. Imports no other folder.
 */

export { backOff } from './backoff.js';
export { copyToSharedMemory } from './copy-to-shared-memory.js';
export { mapConcurrent } from './map-concurrent.js';
export { PeriodicTask } from './periodic-task.js';
export { raceAbort } from './race-abort.js';
export { runAllOrAbort } from './run-all-or-abort.js';
export { Semaphore } from './semaphore.js';
export { SerialQueue } from './serial-queue.js';
export { handleTasksByKind, TaskPool } from './task-pool.js';
export { toArray } from './to-array.js';
export { handleTasks, WorkerPool } from './worker-pool.js';
