import type { JobRecord } from '../storage/index.js';
import type { IdempotencyKey } from './job-idempotency-keys.js';
import type { FullJobContext, Process } from './job-process.js';

/** The connection of a node's job service to its cluster: publishes the jobs of the node to the other nodes, and distributes their work. */
export interface JobRegistry {
  /**
   * Publishes a new job. If the same request has already started another job, publishes nothing and returns the id of the other job.
   * Throws TW_JOB_KEY_REUSED.
   */
  accept(job: JobRecord, request?: IdempotencyKey): Promise<string | undefined>;
  /**
   * Undoes `accept` for a job that this node could not write to its disk, so that no node runs the job. `reason` is the error of the write.
   * Throws TW_JOB_PERHAPS_ACCEPTED if `accept` cannot be undone.
   */
  withdraw(job: string, reason: unknown, request?: IdempotencyKey): Promise<void>;
  /** Stores the inputs that `prepare` has completed, so that another node can take over the job with them. Returns the stored inputs. */
  storePrepared(job: string, given: unknown): Promise<unknown>;
  /** Publishes the record of a job, which must already be on disk. Throws TW_JOB_TAKEN_OVER if another node now leads the job. */
  publish(job: JobRecord, isNewState: boolean): Promise<void>;
  /**
   * True if this node still leads a job that an earlier process of this node has left unfinished. Publishes the job if the cluster does
   * not know it.
   */
  isLedHere(job: JobRecord): Promise<boolean>;
  /** Notes in the published entry of `job` that another job, with the id `by`, retries it. */
  markRetried(job: string, by: string): Promise<void>;
  /** True if the cluster knows that the job has ended, so that no node runs it again. Only for jobs that this node has led. */
  hasPublishedEnd(job: string): Promise<boolean>;
  /** True if this node works on a task of the job. The job may be led by another node. */
  isWorkedOn(job: string): boolean;
  /** Must be called when this process no longer runs the job. */
  release(job: string): void;
  /** Does the work of a job together with other nodes, and returns the results of the job. */
  work(process: Process, inputs: unknown, context: FullJobContext): Promise<unknown>;
}
