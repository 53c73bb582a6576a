export { backOff } from './backoff.js';
export { workerDied, workerStuck } from './errors.js';
export { inLanes } from './map-concurrent.js';
export { Repeated } from './periodic-task.js';
export { Limit } from './semaphore.js';
export { SerialQueue } from './serial-queue.js';
export { toArray } from './to-array.js';
export { serveTasks, WorkerPool } from './worker-pool.js';
