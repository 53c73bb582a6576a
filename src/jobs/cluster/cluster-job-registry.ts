/** Tells all nodes of the jobs that this one leads: by their documents, and objects beside them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { coordinationFull, coordinationUnavailable, outcomeUnknown } from '../../coordination/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import type { Catalogue, JobRecord } from '../../storage/index.js';
import { acceptanceUnknown, jobInterrupted, jobTakenOver } from '../errors.js';
import type { IdempotencyKey } from '../local/idempotency-keys.js';
import { MAX_LINES, readLog } from '../local/job-log.js';
import { hasEnded } from '../local/job-records.js';
import type { JobRegistry } from '../local/job-registry.js';
import type { JobArtifacts } from './job-artifacts.js';
import { type JobEntries, type JobEntry, jobSummaryOf, type StoredJobEntry } from './job-entries.js';

/** Progress is told to other nodes at most so often, ms, and waits so long for the coordination store. */
const PROGRESS_INTERVAL_MS = 5000;
const PROGRESS_TIMEOUT_MS = 1000;
/** After a failed attempt to tell a state, ms. */
const RETRY_DELAY_MS = 1000;

export interface ClusterJobRegistryOptions {
  catalogue: Catalogue;
  documents: JobEntries;
  objects: JobArtifacts;
  /** Id of this node. */
  self: string;
  work: JobRegistry['work'];
  isWorkedOn: JobRegistry['isWorkedOn'];
  /** Its progress shows that a job is another node's by now. */
  onTakenOver: (job: string) => void;
  /** Is told of what goes wrong in the background; all of it is tried again. */
  onFailure: (error: unknown) => void;
}

/**
 * Invariants: a job has one home, the node that its document names, and only that changes the document, by comparing the revision that it
 * knows; a state is told here after the document says so. `revisions` has the jobs of this home that have not ended.
 */
export class ClusterJobRegistry implements JobRegistry {
  /** Jobs whose document may be there and that are not admitted by `Jobs` yet: others must not pick them up. */
  readonly accepting = new Set<string>();
  private readonly revisions = new Map<string, number>();
  private readonly publishedAt = new Map<string, number>();
  private isClosing = false;

  constructor(private readonly options: ClusterJobRegistryOptions) {}

  /** What cannot be told now is told by the next process. */
  close(): void {
    this.isClosing = true;
  }

  async accept(job: JobRecord, request?: IdempotencyKey): Promise<string | undefined> {
    const { id } = job;
    const { documents, objects } = this.options;
    this.accepting.add(id);
    try {
      await objects.putInputs(id, job);
      const added = await documents.create(this.documentOf(job), request);
      if ('revision' in added) {
        this.revisions.set(id, added.revision);
        return undefined;
      }
      this.accepting.delete(id);
      await objects.removeInputs(id);
      return added.known;
    } catch (error) {
      this.accepting.delete(id);
      if (outcomeUnknown.is(error)) throw acceptanceUnknown.because(error, id, rootCause(error));
      await objects.removeInputs(id).catch(this.options.onFailure);
      if (coordinationUnavailable.is(error))
        throw coordinationUnavailable.because(error, `job ${id} was not accepted`, 'etcd', rootCause(error));
      throw error;
    }
  }

  storePrepared(job: string, given: unknown): Promise<unknown> {
    return this.options.objects.putPrepared(job, given);
  }

  async withdraw(job: string, reason: unknown, request?: IdempotencyKey): Promise<void> {
    const { documents, objects, onFailure } = this.options;
    const isWithdrawn = await documents.withdraw(job, this.revisions.get(job)!, request).catch((error) => {
      throw acceptanceUnknown.because(error, job, rootCause(error));
    });
    if (!isWithdrawn) throw acceptanceUnknown.because(reason, job, rootCause(reason));
    await objects.removeInputs(job).catch(onFailure);
  }

  async publish(job: JobRecord, isNewState: boolean): Promise<void> {
    if (!this.revisions.has(job.id)) return;
    if (isNewState) return this.publishState(job);
    const now = performance.now();
    if (hasEnded(job) || now - (this.publishedAt.get(job.id) ?? -Infinity) < PROGRESS_INTERVAL_MS) return;
    this.publishedAt.set(job.id, now);
    try {
      await this.publishOnce(job, PROGRESS_TIMEOUT_MS);
    } catch (error) {
      if (jobTakenOver.is(error)) this.options.onTakenOver(job.id);
      // The next progress tells it, or the next state.
      else if (!isUnavailable(error)) throw error;
    }
  }

  async isLedHere(job: JobRecord): Promise<boolean> {
    const { documents, self } = this.options;
    for (;;) {
      const stored = await documents.get(job.id);
      if (!stored) {
        // It was there before the node came into the cluster.
        await this.accept(job);
        return true;
      }
      if (!stored.isLive || stored.entry.home !== self) return false;
      if (await this.takeOver(job, stored)) return true;
    }
  }

  markRetried(job: string, by: string): Promise<void> {
    return this.options.documents.updateEnded(job, (document) => ({
      ...document,
      job: { ...document.job, retriedBy: by },
    }));
  }

  async hasPublishedEnd(job: string): Promise<boolean> {
    const stored = await this.options.documents.get(job);
    return !stored?.isLive || stored.entry.home !== this.options.self;
  }

  release(job: string): void {
    this.accepting.delete(job);
    this.revisions.delete(job);
    this.publishedAt.delete(job);
  }

  get work(): JobRegistry['work'] {
    return this.options.work;
  }

  get isWorkedOn(): JobRegistry['isWorkedOn'] {
    return this.options.isWorkedOn;
  }

  /** Makes this node the home of a job, whose record is then this; false where its document has changed. */
  async takeOver(job: JobRecord, { revision }: StoredJobEntry): Promise<boolean> {
    const { set, current } = await this.options.documents.update(this.documentOf(job), revision);
    if (set) this.revisions.set(job.id, current!.revision);
    return set;
  }

  /** Tells the end of a job of this home that was written here and not told. */
  async publishLate(job: JobRecord, { revision }: StoredJobEntry): Promise<void> {
    this.revisions.set(job.id, revision);
    await this.publishState(job);
  }

  private documentOf(job: JobRecord): JobEntry {
    const { status, results } = job;
    const hasResults = status === 'successful' || (status === 'dismissed' && results !== undefined);
    return { home: this.options.self, job: jobSummaryOf(job), ...(hasResults && { hasResults }) };
  }

  /** Waits for the stores as long as it takes, or until the node stops: then the next process tells it. */
  private async publishState(job: JobRecord): Promise<void> {
    // The same for all attempts, so that a failed one leaves nothing.
    const folder = this.options.objects.endFolder(job.id);
    for (;;) {
      try {
        if (hasEnded(job)) await this.publishEnd(job, folder);
        else await this.publishOnce(job);
        return;
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        this.options.onFailure(error);
        if (this.isClosing) return;
        await sleep(RETRY_DELAY_MS);
      }
    }
  }

  private async publishOnce(job: JobRecord, timeoutMs?: number): Promise<void> {
    for (;;) {
      const revision = this.revisions.get(job.id)!;
      const { set, current } = await this.options.documents.update(this.documentOf(job), revision, timeoutMs);
      if (current?.entry.home !== this.options.self) throw jobTakenOver(job.id);
      this.revisions.set(job.id, current.revision);
      if (set) return;
    }
  }

  private async publishEnd(job: JobRecord, folder: string): Promise<void> {
    const { id } = job;
    const { catalogue, documents, objects } = this.options;
    await objects.putEnd(folder, job, await readLog(catalogue, id, 0, MAX_LINES));
    while (!(await documents.end({ ...this.documentOf(job), folder }, this.revisions.get(id)!))) {
      const stored = await documents.get(id);
      if (!stored?.isLive || stored.entry.home !== this.options.self) throw jobTakenOver(id);
      this.revisions.set(id, stored.revision);
    }
    this.revisions.delete(id);
    this.publishedAt.delete(id);
  }
}

/** What has gone wrong in the first place. */
function rootCause(error: unknown): string {
  return error instanceof Error && error.cause ? rootCause(error.cause) : messageOf(error);
}

/** Whether a store did not answer, or takes nothing until its operator has made room. */
function isUnavailable(error: unknown): boolean {
  return (
    coordinationUnavailable.is(error) ||
    coordinationFull.is(error) ||
    outcomeUnknown.is(error) ||
    (error instanceof TilewrightError && error.status === 503 && !jobInterrupted.is(error))
  );
}
