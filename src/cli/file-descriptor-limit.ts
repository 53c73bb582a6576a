import { readFileSync } from 'node:fs';
import { fewDescriptors } from './errors.js';

/**
 * Loading the program opens about 100 files at once. A server needs more for its database, and each thread of an ingest loads its own
 * modules.
 */
const LEAST_DESCRIPTORS = 256;

/** Throws TW_CLI_DESCRIPTORS if this process may open too few files. Systems without /proc do not report the limit and are not checked. */
export function requireDescriptors(): void {
  let limits: string;
  try {
    limits = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return;
  }
  const limit = /^Max open files +(\d+) /m.exec(limits)?.[1];
  if (limit !== undefined && Number(limit) < LEAST_DESCRIPTORS)
    throw fewDescriptors(Number(limit), LEAST_DESCRIPTORS);
}
