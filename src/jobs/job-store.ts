/** Job records on disk. */
import { messageOf, TilewrightError } from '../errors.js';
import type { Catalogue, JobRecord, JobStatus } from '../storage/index.js';
import { jobFailed, jobInterrupted } from './errors.js';

const ENDED: ReadonlySet<JobStatus> = new Set(['successful', 'failed', 'dismissed']);

export function hasEnded(job: JobRecord): boolean {
  return ENDED.has(job.status);
}

/** What a record says of the error that ended its job. */
export function jobError(error: unknown): { code: string; message: string } {
  const { code, message } =
    error instanceof TilewrightError ? error : jobFailed.because(error, messageOf(error));
  return { code, message };
}

/** Job ids sort in the order of their creation. A record is on disk when `put` resolves. */
export class JobStore {
  constructor(private readonly catalogue: Catalogue) {}

  put(job: JobRecord): Promise<void> {
    return this.catalogue.write([this.catalogue.jobs.set(job.id, job)]);
  }

  get(id: string): Promise<JobRecord | undefined> {
    return this.catalogue.jobs.get(id);
  }

  /** Newest first, from before the job `before` on. Damaged records are passed over; `verify` names them. */
  async list(limit: number, before?: string): Promise<JobRecord[]> {
    const jobs: JobRecord[] = [];
    for await (const { record } of this.catalogue.jobs.scan({ before, reverse: true, limit }))
      if (record) jobs.push(record);
    return jobs;
  }

  /** Marks the jobs as failed that a dead process has left waiting or running. */
  async failInterrupted(): Promise<void> {
    for await (const { record } of this.catalogue.jobs.scan()) {
      if (!record || hasEnded(record)) continue;
      const now = Date.now();
      const error = jobError(jobInterrupted(record.id));
      await this.put({ ...record, status: 'failed', finished: now, updated: now, error });
    }
  }
}
