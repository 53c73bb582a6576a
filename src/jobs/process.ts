/** A process: work that runs as a job, the same from the command line and over HTTP (OGC API Processes, part 1). */
import type { JobContext } from './index.js';

export interface Process {
  id: string;
  title: string;
  description: string;
  /** JSON Schema of the inputs. */
  inputs: Record<string, unknown>;
  /** Does the work. Throws a TilewrightError where the inputs cannot be used; returns what the design calls the results. */
  run(inputs: unknown, context: JobContext): Promise<unknown>;
}
