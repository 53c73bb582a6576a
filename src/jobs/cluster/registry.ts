/** Publishes the jobs that this node leads to all nodes: as entries in the coordination store, with objects in the object store. */
import { setTimeout as sleep } from 'node:timers/promises';
import { toArray } from '../../async/index.js';
import { coordinationFull, coordinationUnavailable, outcomeUnknown } from '../../coordination/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import {
  type Catalogue,
  type JobRecord,
  newVersion,
  type ObjectStore,
  storeExists,
} from '../../storage/index.js';
import { acceptanceUnknown, jobInterrupted, jobTakenOver } from '../errors.js';
import { type LogLine, MAX_LINES, readLog } from '../log.js';
import { hasEnded, type IdempotencyKey, type JobRegistry } from '../records.js';
import type { JobFile } from '../service.js';
import { entrySummaryOf, type JobEntries, type JobEntry, type StoredJobEntry } from './entries.js';

/** Minimum interval between published progress, and its time limit at the coordination store. */
const PROGRESS_INTERVAL_MS = 5000;
const PROGRESS_TIMEOUT_MS = 1000;
/** Wait after a failed attempt to publish a state. */
const RETRY_DELAY_MS = 1000;

interface ClusterJobRegistryOptions {
  catalogue: Catalogue;
  entries: JobEntries;
  artifacts: JobArtifacts;
  /** Id of this node. */
  self: string;
  work: JobRegistry['work'];
  isWorkedOn: JobRegistry['isWorkedOn'];
  /** Called when publishing progress shows that another node leads the job now. */
  onTakenOver: (job: string) => void;
  /** Called with errors of background work, all of which is retried. */
  onFailure: (error: unknown) => void;
}

/**
 * Invariants: A job has one leader, the node named by its entry, and only that node changes the entry, by comparing the revision that it
 * knows. A state is reported on this node only after the entry has it. `revisions` has the jobs of this leader that have not ended.
 */
export class ClusterJobRegistry implements JobRegistry {
  /** Jobs whose entry may exist before the local service has admitted them: failover must not take them. */
  readonly accepting = new Set<string>();
  private readonly revisions = new Map<string, number>();
  private readonly publishedAt = new Map<string, number>();
  private isClosing = false;

  constructor(private readonly options: ClusterJobRegistryOptions) {}

  /** Stops retries; the next process publishes what could not be published. */
  close(): void {
    this.isClosing = true;
  }

  async accept(job: JobRecord, request?: IdempotencyKey): Promise<string | undefined> {
    const { id } = job;
    const { entries, artifacts } = this.options;
    this.accepting.add(id);
    try {
      await artifacts.putInputs(job);
      const added = await entries.create(this.entryOf(job), request);
      if ('revision' in added) {
        this.revisions.set(id, added.revision);
        return undefined;
      }
      this.accepting.delete(id);
      await artifacts.removeInputs(id);
      return added.known;
    } catch (error) {
      this.accepting.delete(id);
      if (outcomeUnknown.is(error)) throw acceptanceUnknown.because(error, id, rootCause(error));
      await artifacts.removeInputs(id).catch(this.options.onFailure);
      if (coordinationUnavailable.is(error))
        throw coordinationUnavailable.because(error, `job ${id} was not accepted`, 'etcd', rootCause(error));
      throw error;
    }
  }

  storePrepared(job: string, given: unknown): Promise<unknown> {
    return this.options.artifacts.putPrepared(job, given);
  }

  async withdraw(job: string, reason: unknown, request?: IdempotencyKey): Promise<void> {
    const { entries, artifacts, onFailure } = this.options;
    const isWithdrawn = await entries.withdraw(job, this.revisions.get(job)!, request).catch((error) => {
      throw acceptanceUnknown.because(error, job, rootCause(error));
    });
    if (!isWithdrawn) throw acceptanceUnknown.because(reason, job, rootCause(reason));
    await artifacts.removeInputs(job).catch(onFailure);
  }

  async publish(job: JobRecord, isNewState: boolean): Promise<void> {
    if (!this.revisions.has(job.id)) return;
    // The record of an end may have been written before, without its results.
    if (isNewState || hasEnded(job)) return this.publishState(job);
    const now = performance.now();
    if (now - (this.publishedAt.get(job.id) ?? -Infinity) < PROGRESS_INTERVAL_MS) return;
    this.publishedAt.set(job.id, now);
    try {
      await this.publishOnce(job, PROGRESS_TIMEOUT_MS);
    } catch (error) {
      if (jobTakenOver.is(error)) this.options.onTakenOver(job.id);
      // The next progress or state includes this one.
      else if (!isUnavailable(error)) throw error;
    }
  }

  async isLedHere(job: JobRecord): Promise<boolean> {
    const { entries, self } = this.options;
    for (;;) {
      const stored = await entries.get(job.id);
      if (!stored) {
        // The job is older than the membership of this node in the cluster.
        await this.accept(job);
        return true;
      }
      if (!stored.isLive || stored.entry.home !== self) return false;
      if (await this.takeOver(job, stored)) return true;
    }
  }

  markRetried(job: string, by: string): Promise<void> {
    return this.options.entries.updateEnded(job, (entry) => ({
      ...entry,
      job: { ...entry.job, retriedBy: by },
    }));
  }

  async hasPublishedEnd(job: string): Promise<boolean> {
    const stored = await this.options.entries.get(job);
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

  /** Makes this node the leader of a job with the record `job`; false if the entry has changed. */
  async takeOver(job: JobRecord, { revision }: StoredJobEntry): Promise<boolean> {
    const { set, current } = await this.options.entries.update(this.entryOf(job), revision);
    if (set) this.revisions.set(job.id, current!.revision);
    return set;
  }

  /** Publishes the end of a job of this node that was written to disk but not published. */
  async publishLate(job: JobRecord, { revision }: StoredJobEntry): Promise<void> {
    this.revisions.set(job.id, revision);
    await this.publishState(job);
  }

  private entryOf(job: JobRecord): JobEntry {
    return { home: this.options.self, job: entrySummaryOf(job) };
  }

  /** Retries until the stores answer, or until the node stops; the next process then publishes the state. */
  private async publishState(job: JobRecord): Promise<void> {
    // All attempts use one folder, so a failed attempt leaves nothing behind.
    const folder = this.options.artifacts.endFolder(job.id);
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
      const { set, current } = await this.options.entries.update(this.entryOf(job), revision, timeoutMs);
      if (current?.entry.home !== this.options.self) throw jobTakenOver(job.id);
      this.revisions.set(job.id, current.revision);
      if (set) return;
    }
  }

  private async publishEnd(job: JobRecord, folder: string): Promise<void> {
    const { id } = job;
    const { catalogue, entries, artifacts } = this.options;
    await artifacts.putEnd(folder, job, await readLog(catalogue, id, 0, MAX_LINES));
    while (!(await entries.end({ ...this.entryOf(job), folder }, this.revisions.get(id)!))) {
      const stored = await entries.get(id);
      if (!stored?.isLive || stored.entry.home !== this.options.self) throw jobTakenOver(id);
      this.revisions.set(id, stored.revision);
    }
    this.revisions.delete(id);
    this.publishedAt.delete(id);
  }
}

/** The message of the innermost cause. */
function rootCause(error: unknown): string {
  return error instanceof Error && error.cause ? rootCause(error.cause) : messageOf(error);
}

/** True if a store did not answer, or is full until its operator makes room. */
function isUnavailable(error: unknown): boolean {
  return (
    coordinationUnavailable.is(error) ||
    coordinationFull.is(error) ||
    outcomeUnknown.is(error) ||
    (error instanceof TilewrightError && error.status === 503 && !jobInterrupted.is(error))
  );
}

/** A job as it was requested, with its prepared inputs. */
export type RequestedJob = Pick<
  JobRecord,
  'id' | 'process' | 'created' | 'inputs' | 'given' | 'resultOptions' | 'uploads'
>;

const JOBS_FOLDER = 'jobs/';
const folderOf = (id: string) => `${JOBS_FOLDER}${id}/`;
const inputsName = (id: string) => `${folderOf(id)}asked.json`;
const preparedName = (id: string) => `${folderOf(id)}prepared.json`;

/** The objects of a job in the object store: its inputs and, after its end, its record, log and files. */
export class JobArtifacts {
  constructor(private readonly objects: ObjectStore) {}

  async putInputs(job: RequestedJob): Promise<void> {
    const { id, process, created, inputs, given, resultOptions, uploads } = job;
    const requested: RequestedJob = { id, process, created, inputs, given, resultOptions, uploads };
    await this.objects.put(inputsName(id), Buffer.from(JSON.stringify(requested)));
  }

  /** Undefined if the object is missing. */
  async inputs(id: string): Promise<RequestedJob | undefined> {
    if (!(await this.objects.head(inputsName(id)))) return undefined;
    const job = await this.read<RequestedJob>(inputsName(id));
    if (!(await this.objects.head(preparedName(id)))) return job;
    return { ...job, given: await this.read(preparedName(id)) };
  }

  /** Stores inputs that `Process.prepare` has completed. Returns the inputs that an earlier leader has stored, if there are any. */
  async putPrepared(id: string, given: unknown): Promise<unknown> {
    try {
      await this.objects.put(preparedName(id), Buffer.from(JSON.stringify(given)));
      return given;
    } catch (error) {
      if (!storeExists.is(error)) throw error;
      return this.read(preparedName(id));
    }
  }

  async removeInputs(id: string): Promise<void> {
    await this.objects.delete([inputsName(id)]);
  }

  /** A new folder for the record and the log of a job that has ended. */
  endFolder(id: string): string {
    return `${folderOf(id)}${newVersion()}`;
  }

  async putEnd(folder: string, job: JobRecord, lines: LogLine[]): Promise<void> {
    const log = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    await this.objects.put(`${folder}/record.json`, Buffer.from(JSON.stringify(job)));
    await this.objects.put(`${folder}/log.ndjson`, Buffer.from(log));
  }

  async record(folder: string): Promise<JobRecord> {
    return JSON.parse((await this.objects.get(`${folder}/record.json`)).toString()) as JobRecord;
  }

  async log(folder: string): Promise<LogLine[]> {
    const text = (await this.objects.get(`${folder}/log.ndjson`)).toString();
    const lines = text.split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as LogLine);
  }

  /** The ids of all jobs that have objects, each with the newest folder of an end, if it has one. */
  async stored(): Promise<Map<string, string | undefined>> {
    const folders = new Map<string, string | undefined>();
    for await (const { name } of this.objects.list(JOBS_FOLDER)) {
      const id = name.split('/')[1]!;
      const end = /^(jobs\/[^/]+\/[^/]+)\/record\.json$/.exec(name)?.[1];
      folders.set(id, end ?? folders.get(id));
    }
    return folders;
  }

  /** A result file of a job; undefined if it does not exist. */
  async file(name: string): Promise<JobFile | undefined> {
    const info = await this.objects.head(name);
    return info && { bytes: info.bytes, open: () => this.objects.stream(name) };
  }

  private async read<T>(name: string): Promise<T> {
    return JSON.parse((await this.objects.get(name)).toString()) as T;
  }

  /** Removes all objects of a job. */
  async remove(id: string): Promise<void> {
    const names = (await toArray(this.objects.list(folderOf(id)))).map(({ name }) => name);
    await this.objects.delete(names);
  }
}
