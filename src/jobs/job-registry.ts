import type { JobRecord } from '../storage/index.js';
import type { IdempotencyKey } from './job-idempotency-keys.js';
import type { FullJobContext, Process } from './job-process.js';

/** The cluster's view of the jobs of a node: publishes them to the other nodes, and distributes their work. */
export interface JobRegistry {
  /**
   * Publishes a new job. If the same request has started another job in the meantime, returns the id of that job. Throws TW_JOB_KEY_REUSED.
   */
  accept(job: JobRecord, request?: IdempotencyKey): Promise<string | undefined>;
  /**
   * Undoes `accept` for a job that could not be written to this node, for `reason`, so that it never runs. Throws
   * TW_JOB_PERHAPS_ACCEPTED if that fails.
   */
  withdraw(job: string, reason: unknown, request?: IdempotencyKey): Promise<void>;
  /** Stores the inputs that `prepare` has completed, for a node that takes the job over. Returns the stored inputs. */
  storePrepared(job: string, given: unknown): Promise<unknown>;
  /** Publishes a state that is on disk. Throws TW_JOB_TAKEN_OVER if another node leads the job now. */
  publish(job: JobRecord, isNewState: boolean): Promise<void>;
  /** True if this node still leads a job that an earlier process of this node has left. */
  isLedHere(job: JobRecord): Promise<boolean>;
  /** Records in the entry of a job that it was retried by another job. */
  markRetried(job: string, by: string): Promise<void>;
  /** True if the end of a job that this node has led is published, so that no node runs the job again. */
  hasPublishedEnd(job: string): Promise<boolean>;
  /** True if this node works on a task of the job, which another node may lead. */
  isWorkedOn(job: string): boolean;
  /** Called when this process does not run the job any more. */
  release(job: string): void;
  /** Does the work of a job together with other nodes. */
  work(process: Process, inputs: unknown, context: FullJobContext): Promise<unknown>;
}
