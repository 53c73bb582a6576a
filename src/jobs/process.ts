/** A process: work that runs as a job, the same from the command line and over HTTP (OGC API Processes, part 1). */
import type { JobRecord } from '../storage/index.js';
import type { JobContext, Jobs } from './job-runner.js';

export interface Process {
  id: string;
  title: string;
  description: string;
  /** JSON Schema of the inputs. */
  inputs: Record<string, unknown>;
  /** Does the work. Throws a TilewrightError where the inputs cannot be used; returns what the design calls the results. */
  run(inputs: unknown, context: JobContext): Promise<unknown>;
}

/**
 * Accepts a run of a process as a job. The inputs have been checked against the process's schema; they are what the record
 * says. `given` is what the process gets, where it must know more than who reads the record.
 */
export function startProcess(
  jobs: Jobs,
  process: Process,
  inputs: unknown,
  given: unknown = inputs,
): Promise<JobRecord> {
  return jobs.start(process.id, inputs, (context) => process.run(given, context));
}
