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
  'Decoding or cutting took far more time of the processor than any valid input needs. The input is probably damaged: download it again.',
  (seconds: number) =>
    `a task did not end within ${seconds} s of the processor. The input is probably damaged; download it again.`,
);

/** A task did not get the processor, or waited for something else. */
export const workerBlocked = defineError(
  'TW_RASTER_WORKER_BLOCKED',
  503,
  'A thread hardly got the processor for minutes: the machine is busy, or a file system does not answer. Nothing says that the input is damaged. Retry when the machine is less busy.',
  (lasted: number, busy: number) =>
    `a task did not end within ${lasted.toFixed(0)} s, in which its thread had ${busy.toFixed(1)} s of the processor: the machine is busy, or a file system does not answer. Retry later.`,
);
