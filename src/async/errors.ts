/** Errors of worker threads. */
import { defineError } from '../errors.js';

/** A worker thread ended while it had work. */
export const workerDied = defineError(
  'TW_RASTER_WORKER_DIED',
  500,
  'A worker thread ended in the middle of its work, most often for lack of memory. Lower --memory or --cores and retry.',
  (why: string) =>
    `a worker thread ended in the middle of its work: ${why}. Lower --memory or --cores and retry.`,
);

/** A task that did not end: a decoder caught in damaged data. */
export const workerStuck = defineError(
  'TW_RASTER_WORKER_STUCK',
  500,
  'Decoding or cutting went on far longer than sound data ever needs. The input is most likely damaged: fetch it again.',
  (seconds: number) =>
    `a piece of work did not end within ${seconds} s. The input is most likely damaged; fetch it again.`,
);
