import type { JobRecord } from '../../storage/index.js';
import type { IdempotencyKey } from './idempotency-keys.js';
import type { FullJobContext, Process } from './process.js';

/** Where a node that is one of many tells the others of its jobs, and has them share in the work. */
export interface JobRegistry {
  /** Tells of a new job; or gives the one that the same request has started meanwhile, and then tells of none. Throws TW_JOB_KEY_REUSED. */
  accept(job: JobRecord, request?: IdempotencyKey): Promise<string | undefined>;
  /**
   * Undoes `accept` for a job that could not be written here, because of `reason`, so that it never runs. Throws
   * TW_JOB_PERHAPS_ACCEPTED if that fails.
   */
  withdraw(job: string, reason: unknown, request?: IdempotencyKey): Promise<void>;
  /** Stores inputs that `prepare` has completed, so that a node that takes the job over has them. Returns the stored ones. */
  storePrepared(job: string, given: unknown): Promise<unknown>;
  /** Tells of a state that is on disk here. Throws TW_JOB_TAKEN_OVER where the job is another node's by now. */
  publish(job: JobRecord, isNewState: boolean): Promise<void>;
  /** Whether a job that an earlier process of this node has left is this node's still. */
  isLedHere(job: JobRecord): Promise<boolean>;
  /** Tells that a job is retried by another. */
  markRetried(job: string, by: string): Promise<void>;
  /** Whether the end of a job that this node has led is published, so that no node runs the job again. */
  hasPublishedEnd(job: string): Promise<boolean>;
  /** Whether this node works on a part of the job, which another node may lead. */
  isWorkedOn(job: string): boolean;
  /** This process does not run the job any more. */
  release(job: string): void;
  /** Does the work of a job, with others. */
  work(process: Process, inputs: unknown, context: FullJobContext): Promise<unknown>;
}
