import { readFileSync } from 'node:fs';
import { fileDescriptorLimitTooLow } from './errors.js';

/**
 * Loading the program opens about 100 files at the same time. A server needs more for its database, and each thread of an ingest loads
 * its own modules.
 */
const MIN_FILE_DESCRIPTORS = 256;

/** Throws TW_CLI_DESCRIPTORS if the limit of open files is too low. Does not check systems without /proc, which do not report the limit. */
export function requireFileDescriptors(): void {
  let limits: string;
  try {
    limits = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return;
  }
  const limit = /^Max open files +(\d+) /m.exec(limits)?.[1];
  if (limit !== undefined && Number(limit) < MIN_FILE_DESCRIPTORS)
    throw fileDescriptorLimitTooLow(Number(limit), MIN_FILE_DESCRIPTORS);
}
