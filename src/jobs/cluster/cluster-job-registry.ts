/** Tells all nodes of the jobs that this one leads: by their documents, and objects beside them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { coordinationFull, coordinationUnavailable, outcomeUnknown } from '../../coordination/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import type { Catalogue, JobRecord } from '../../storage/index.js';
import { jobInterrupted, jobTakenOver, perhapsAccepted } from '../errors.js';
import type { RequestKey } from '../local/idempotency-keys.js';
import { MOST_LINES, readLog } from '../local/job-log.js';
import { hasEnded } from '../local/job-records.js';
import type { JobBoard } from '../local/job-registry.js';
import type { JobObjects } from './job-artifacts.js';
import { type JobDocument, type JobDocuments, type StoredJob, summaryOf } from './job-entries.js';

/** Progress is told to other nodes at most so often, ms, and waits so long for the coordination store. */
const PROGRESS_INTERVAL = 5000;
const PROGRESS_PATIENCE = 1000;
/** After a failed attempt to tell a state, ms. */
const PAUSE = 1000;

export interface ClusterBoardOptions {
  catalogue: Catalogue;
  documents: JobDocuments;
  objects: JobObjects;
  /** Id of this node. */
  home: string;
  work: JobBoard['work'];
  isWorkedOn: JobBoard['isWorkedOn'];
  /** Its progress shows that a job is another node's by now. */
  onTakenOver: (job: string) => void;
  /** Is told of what goes wrong in the background; all of it is tried again. */
  onFailure: (error: unknown) => void;
}

/**
 * Invariants: a job has one home, the node that its document names, and only that changes the document, by comparing the revision that it
 * knows; a state is told here after the document says so. `revisions` has the jobs of this home that have not ended.
 */
export class ClusterBoard implements JobBoard {
  /** Jobs whose document may be there and that are not admitted by `Jobs` yet: others must not pick them up. */
  readonly accepting = new Set<string>();
  private readonly revisions = new Map<string, number>();
  private readonly toldAt = new Map<string, number>();
  private isClosing = false;

  constructor(private readonly options: ClusterBoardOptions) {}

  /** What cannot be told now is told by the next process. */
  close(): void {
    this.isClosing = true;
  }

  async accept(job: JobRecord, request?: RequestKey): Promise<string | undefined> {
    const { id } = job;
    const { documents, objects } = this.options;
    this.accepting.add(id);
    try {
      await objects.putAsked(id, job);
      const added = await documents.add(this.documentOf(job), request);
      if ('revision' in added) {
        this.revisions.set(id, added.revision);
        return undefined;
      }
      this.accepting.delete(id);
      await objects.removeAsked(id);
      return added.known;
    } catch (error) {
      this.accepting.delete(id);
      if (outcomeUnknown.is(error)) throw perhapsAccepted.because(error, id, reasonOf(error));
      await objects.removeAsked(id).catch(this.options.onFailure);
      if (coordinationUnavailable.is(error))
        throw coordinationUnavailable.because(error, `job ${id} was not accepted`, 'etcd', reasonOf(error));
      throw error;
    }
  }

  prepared(job: string, given: unknown): Promise<unknown> {
    return this.options.objects.putPrepared(job, given);
  }

  async withdraw(job: string, reason: unknown, request?: RequestKey): Promise<void> {
    const { documents, objects, onFailure } = this.options;
    const isWithdrawn = await documents.withdraw(job, this.revisions.get(job)!, request).catch((error) => {
      throw perhapsAccepted.because(error, job, reasonOf(error));
    });
    if (!isWithdrawn) throw perhapsAccepted.because(reason, job, reasonOf(reason));
    await objects.removeAsked(job).catch(onFailure);
  }

  async publish(job: JobRecord, isNewState: boolean): Promise<void> {
    if (!this.revisions.has(job.id)) return;
    if (isNewState) return this.publishState(job);
    const now = performance.now();
    if (hasEnded(job) || now - (this.toldAt.get(job.id) ?? -Infinity) < PROGRESS_INTERVAL) return;
    this.toldAt.set(job.id, now);
    try {
      await this.publishOnce(job, PROGRESS_PATIENCE);
    } catch (error) {
      if (jobTakenOver.is(error)) this.options.onTakenOver(job.id);
      // The next progress tells it, or the next state.
      else if (!isUnavailable(error)) throw error;
    }
  }

  async isOurs(job: JobRecord): Promise<boolean> {
    const { documents, home } = this.options;
    for (;;) {
      const stored = await documents.get(job.id);
      if (!stored) {
        // It was there before the node came into the cluster.
        await this.accept(job);
        return true;
      }
      if (!stored.live || stored.document.home !== home) return false;
      if (await this.takeOver(job, stored)) return true;
    }
  }

  retried(job: string, by: string): Promise<void> {
    return this.options.documents.amend(job, (document) => ({
      ...document,
      job: { ...document.job, retriedBy: by },
    }));
  }

  async hasPublishedEnd(job: string): Promise<boolean> {
    const stored = await this.options.documents.get(job);
    return !stored?.live || stored.document.home !== this.options.home;
  }

  forget(job: string): void {
    this.accepting.delete(job);
    this.revisions.delete(job);
    this.toldAt.delete(job);
  }

  get work(): JobBoard['work'] {
    return this.options.work;
  }

  get isWorkedOn(): JobBoard['isWorkedOn'] {
    return this.options.isWorkedOn;
  }

  /** Makes this node the home of a job, whose record is then this; false where its document has changed. */
  async takeOver(job: JobRecord, { revision }: StoredJob): Promise<boolean> {
    const { set, current } = await this.options.documents.change(this.documentOf(job), revision);
    if (set) this.revisions.set(job.id, current!.revision);
    return set;
  }

  /** Tells the end of a job of this home that was written here and not told. */
  async publishLate(job: JobRecord, { revision }: StoredJob): Promise<void> {
    this.revisions.set(job.id, revision);
    await this.publishState(job);
  }

  private documentOf(job: JobRecord): JobDocument {
    const { status, results } = job;
    const hasResults = status === 'successful' || (status === 'dismissed' && results !== undefined);
    return { home: this.options.home, job: summaryOf(job), ...(hasResults && { hasResults }) };
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
        await sleep(PAUSE);
      }
    }
  }

  private async publishOnce(job: JobRecord, patience?: number): Promise<void> {
    for (;;) {
      const revision = this.revisions.get(job.id)!;
      const { set, current } = await this.options.documents.change(this.documentOf(job), revision, patience);
      if (current?.document.home !== this.options.home) throw jobTakenOver(job.id);
      this.revisions.set(job.id, current.revision);
      if (set) return;
    }
  }

  private async publishEnd(job: JobRecord, folder: string): Promise<void> {
    const { id } = job;
    const { catalogue, documents, objects } = this.options;
    await objects.putEnd(folder, job, await readLog(catalogue, id, 0, MOST_LINES));
    while (!(await documents.end({ ...this.documentOf(job), folder }, this.revisions.get(id)!))) {
      const stored = await documents.get(id);
      if (!stored?.live || stored.document.home !== this.options.home) throw jobTakenOver(id);
      this.revisions.set(id, stored.revision);
    }
    this.revisions.delete(id);
    this.toldAt.delete(id);
  }
}

/** What has gone wrong in the first place. */
function reasonOf(error: unknown): string {
  return error instanceof Error && error.cause ? reasonOf(error.cause) : messageOf(error);
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
