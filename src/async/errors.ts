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
  'Decoding or cutting took far more CPU time than any valid input needs. The input is probably damaged: download it again.',
  (seconds: number) =>
    `a task did not end within ${seconds} s of CPU time. The input is probably damaged; download it again.`,
);

/** A thread got hardly any CPU time, or waited for something else. */
export const workerBlocked = defineError(
  'TW_RASTER_WORKER_BLOCKED',
  503,
  'A thread got hardly any CPU time for minutes: the machine is busy, or a file system does not answer. Nothing says that the input is damaged. Retry when the machine is less busy.',
  (lasted: number, busy: number) =>
    `a task did not end within ${lasted.toFixed(0)} s, in which its thread had ${busy.toFixed(1)} s of CPU time: the machine is busy, or a file system does not answer. Retry later.`,
);
