/** Errors of worker threads. */
import { defineError } from '../errors.js';

/** A worker thread ended while it had work. */
export const workerDied = defineError(
  'TW_RASTER_WORKER_DIED',
  500,
  'A worker thread ended during a task, most often because memory ran out. Lower --memory or --cores and retry.',
  (why: string) => `a worker thread ended during a task: ${why}. Lower --memory or --cores and retry.`,
);

/** A task exceeded its time limit, for example because a decoder loops on damaged data. */
export const workerStuck = defineError(
  'TW_RASTER_WORKER_STUCK',
  500,
  'Decoding or cutting took far longer than any valid input needs. The input is probably damaged: download it again.',
  (seconds: number) =>
    `a task did not end within ${seconds} s. The input is probably damaged; download it again.`,
);
