/** The jobs of a cluster node: all nodes know them, share their work, and take over the jobs of a lost node. */
import { PeriodicTask } from '../../async/index.js';
import { coordinationUnavailable } from '../../coordination/index.js';
import { type Cluster, FailureDetector, type OpenCluster, type Peer } from '../../dht/index.js';
import type { TilewrightError } from '../../errors.js';
import { type JobRecord, type JobSummary, jobRecordOf, type Storage } from '../../storage/index.js';
import { jobDismissed, jobInterrupted, jobLost, jobNotFound, jobTakenOver } from '../errors.js';
import type { JobListener, LineListener } from '../execution.js';
import { LocalJobService } from '../local-service.js';
import type { LogLine } from '../log.js';
import type { Process } from '../process.js';
import {
  endedWith,
  GC_INTERVAL_MS,
  hasEnded,
  hasExpired,
  isRemovable,
  QUEUED_STATE,
  recoveredRecord,
} from '../records.js';
import type { JobFile, JobService, ReportedJob, StartedJob, StartOptions } from '../service.js';
import { coordinate } from './coordinator.js';
import { entrySummaryOf, JobEntries, type StoredJobEntry } from './entries.js';
import { ClusterJobRegistry, JobArtifacts, type RequestedJob } from './registry.js';
import { TaskExecutor } from './tasks.js';

/** Default time that a node may be missing before others take over its jobs. */
const GRACE_PERIOD_MS = 30_000;
/** Interval of the checks; there are at least four within the grace period. */
const CHECK_INTERVAL_MS = 5000;
/** Jobs whose last state a node remembers for times when the coordination store does not answer. */
const MAX_SEEN = 1000;
/** Nodes act one after another, so that usually only one does. */
const RANK_DELAY_MS = 1000;

interface JobFailoverOptions {
  jobs: LocalJobService;
  registry: ClusterJobRegistry;
  entries: JobEntries;
  artifacts: JobArtifacts;
  cluster: Pick<Cluster, 'self' | 'revokeLocksOf'> & { nodes: readonly { id: string }[] };
  processes: Process[];
  gracePeriodMs?: number | undefined;
  /** Interval between the collections of old and lost jobs. */
  collectionMs?: number | undefined;
  /** Called with errors, after which the work is retried. */
  onFailure: (error: unknown) => void;
}

/** Takes over the jobs of lost nodes, removes old jobs, and finds those that the coordination store has lost. */
export class JobFailover {
  private readonly gracePeriodMs: number;
  private readonly failureDetector: FailureDetector;
  private readonly task: PeriodicTask;
  private readonly collectionMs: number;
  private collectedAt = -Infinity;
  /** Jobs that had inputs in the object store and no entry at the last collection: they may just be accepted. */
  private withoutEntry = new Set<string>();
  /** Messages of damaged entries, each of which is reported once. */
  private readonly reportedDamage = new Set<string>();
  private isClosing = false;

  constructor(private readonly options: JobFailoverOptions) {
    this.gracePeriodMs = options.gracePeriodMs ?? GRACE_PERIOD_MS;
    this.collectionMs = options.collectionMs ?? GC_INTERVAL_MS;
    this.failureDetector = new FailureDetector(this.gracePeriodMs, RANK_DELAY_MS);
    const intervalMs = Math.min(CHECK_INTERVAL_MS, this.gracePeriodMs / 4);
    this.task = new PeriodicTask(() => this.check(), intervalMs, options.onFailure);
  }

  async close(): Promise<void> {
    this.isClosing = true;
    await this.task.close();
  }

  /** Ends a job as cancelled if this node leads it but does not run it. Other jobs stay as they are. */
  async cancel(id: string): Promise<void> {
    const { jobs, entries, cluster } = this.options;
    const stored = await entries.get(id);
    if (!stored?.isLive || stored.entry.home !== cluster.self) return;
    if (jobs.isLive(id)) return;
    await this.lead(stored, endedWith(jobRecordOf(stored.entry.job), jobDismissed(id)));
  }

  /** Takes over jobs whose leader is missing, and resumes own jobs that do not run. */
  private async check(): Promise<void> {
    const { jobs, entries, cluster, onFailure } = this.options;
    const { nodes, self } = cluster;
    const rank = nodes.findIndex(({ id }) => id === self);
    if (rank < 0) return;
    const present = new Set(nodes.map(({ id }) => id));
    const live = await entries.live(this.onDamaged);
    const leaders = live.map(({ entry }) => entry.home);
    this.failureDetector.update(new Set(leaders.filter((leader) => !present.has(leader))));
    for (const stored of live) {
      if (this.isClosing) return;
      const { home, job } = stored.entry;
      try {
        if (home === self) await this.resumeOwn(stored);
        // If this node led the job before, its own work on it must end first.
        else if (!present.has(home) && !jobs.isLive(job.id)) {
          const overdueMs = -this.failureDetector.msUntilTakeover(home, rank);
          if (overdueMs >= 0) await this.takeOver(stored, overdueMs);
        }
      } catch (error) {
        // The error must not delay the other jobs.
        onFailure(error);
      }
    }
    if (rank === 0 && performance.now() - this.collectedAt > this.collectionMs) await this.collect();
  }

  /** Resumes a job that this node leads but does not run. */
  private async resumeOwn(stored: StoredJobEntry): Promise<void> {
    const { jobs, registry } = this.options;
    const { id } = stored.entry.job;
    if (jobs.isLive(id) || registry.accepting.has(id)) return;
    const own = await jobs.find(id);
    if (own && hasEnded(own)) await registry.publishLate(own, stored);
    else await this.takeOver(stored, Infinity);
  }

  /** `overdueMs`: for how long the job could have been taken over already. */
  private async takeOver(stored: StoredJobEntry, overdueMs: number): Promise<void> {
    const { job, home } = stored.entry;
    const { artifacts, cluster, processes } = this.options;
    const process = processes.find(({ id }) => id === job.process);
    const jobInputs = await artifacts.inputs(job.id);
    if (jobInputs === undefined)
      return this.lead(stored, endedWith(jobRecordOf(stored.entry.job), jobInterrupted(job.id, false)));
    const record: JobRecord = { ...job, ...jobInputs };
    // Uploads are on the lost node.
    const isResumable = job.uploads === undefined && (await mayTakeOver(process, jobInputs));
    // Another node may be able to take the job over.
    if (!isResumable && job.uploads === undefined && overdueMs < this.gracePeriodMs) return;
    const next = recoveredRecord(isResumable ? record : { ...record, resumable: false }, process);
    const remark =
      home === cluster.self
        ? 'restarted, because the node had stopped'
        : `restarted on another node, because node ${home} is not reachable`;
    await this.lead(stored, next, process, remark);
  }

  /**
   * Makes this node the leader of a job with the record `next`, and runs the job if it has not ended. Does nothing if the entry has
   * changed, or if this node is just accepting the job.
   */
  private async lead(
    stored: StoredJobEntry,
    next: JobRecord,
    process?: Process,
    remark?: string,
  ): Promise<void> {
    const { jobs, registry, cluster } = this.options;
    const { home } = stored.entry;
    if (registry.accepting.has(next.id)) return;
    registry.accepting.add(next.id);
    try {
      if (!(await registry.takeOver(next, stored))) return;
      // Otherwise the locks of the lost node would stay until their leases expire.
      if (home !== cluster.self) await cluster.revokeLocksOf(home);
      await jobs.takeOver(process, next, hasEnded(next) ? undefined : remark);
    } finally {
      registry.accepting.delete(next.id);
    }
  }

  private readonly onDamaged = (error: TilewrightError): void => {
    if (this.reportedDamage.has(error.message)) return;
    this.reportedDamage.add(error.message);
    this.options.onFailure(error);
  };

  /**
   * Removes expired jobs from etcd and the object store; each node removes them from its own catalogue. Jobs that only the object store
   * has, as after etcd was restored from a backup, get an entry again.
   */
  private async collect(): Promise<void> {
    const { entries, artifacts, onFailure } = this.options;
    this.collectedAt = performance.now();
    await entries.expireRequests();
    // Listed before the entries, because the objects of a job are removed before its entry.
    const missing = await artifacts.stored();
    for await (const { entry, isLive } of entries.all(this.onDamaged)) {
      const { id } = entry.job;
      missing.delete(id);
      if (isLive || !isRemovable(entry.job)) continue;
      try {
        await artifacts.remove(id);
        await entries.delete(id);
      } catch (error) {
        // The next collection tries again.
        onFailure(error);
      }
    }
    const seenBefore = this.withoutEntry;
    this.withoutEntry = new Set();
    for (const [id, folder] of missing) {
      if (this.isClosing) return;
      try {
        // The entry may be newer than the scan above, or damaged.
        if (await entries.get(id)) continue;
        if (folder !== undefined) await this.restoreEnd(id, folder);
        else if (seenBefore.has(id)) await this.endLost(id);
        else this.withoutEntry.add(id);
      } catch (error) {
        onFailure(error);
      }
    }
  }

  private async restoreEnd(id: string, folder: string): Promise<void> {
    const { entries, artifacts, cluster } = this.options;
    const job = await artifacts.record(folder);
    if (isRemovable(job)) await artifacts.remove(id);
    else await entries.restore({ home: cluster.self, job: entrySummaryOf(job), folder });
  }

  /** Marks a job as failed with TW_JOB_LOST. Only its inputs are left. */
  private async endLost(id: string): Promise<void> {
    const { entries, artifacts, cluster } = this.options;
    const requested = await artifacts.inputs(id);
    // Objects that no inputs precede are not those of a job.
    if (!requested) return artifacts.remove(id);
    const job = endedWith({ ...QUEUED_STATE, ...requested, updated: requested.created }, jobLost(id));
    const folder = artifacts.endFolder(id);
    await artifacts.putEnd(folder, job, []);
    await entries.restore({ home: cluster.self, job: entrySummaryOf(job), folder });
  }
}

async function mayTakeOver(
  process: Process | undefined,
  { inputs, given = inputs }: RequestedJob,
): Promise<boolean> {
  return process?.canTakeOver === undefined || process.canTakeOver(given);
}

interface ClusterJobServiceOptions {
  storage: Storage;
  processes: Process[];
  cluster: OpenCluster;
  resume?: boolean;
  gracePeriodMs?: number;
  /** Called with errors of background work, all of which is retried. */
  onFailure: (error: unknown) => void;
  /** Called with each line of the logs of the jobs that this node leads. */
  onLine?: LineListener;
}

/**
 * Jobs that this process runs are answered from its own records, all others from the entries that their leaders publish: a record that an
 * earlier process of this node has left may contradict what the cluster knows.
 */
export class ClusterJobService implements JobService {
  /** The tasks of this node, for jobs of any leader. */
  readonly tasks: TaskExecutor;
  private jobs!: LocalJobService;
  private readonly registry: ClusterJobRegistry;
  private failover: JobFailover | undefined;
  private readonly openedAt = Date.now();
  /** The jobs that were reported last, the newest at the end. */
  private readonly seen = new Map<string, JobSummary>();
  private readonly entries: JobEntries;
  private readonly artifacts: JobArtifacts;

  private constructor(private readonly options: ClusterJobServiceOptions) {
    const { storage, processes, onFailure } = options;
    const { cluster, peers, objects, coordination } = options.cluster;
    this.entries = new JobEntries(coordination);
    this.artifacts = new JobArtifacts(objects);
    this.tasks = new TaskExecutor({ storage, objects, cluster, processes });
    const shared = { cluster, peers, tasks: this.tasks };
    this.registry = new ClusterJobRegistry({
      catalogue: storage.catalogue,
      entries: this.entries,
      artifacts: this.artifacts,
      self: cluster.self,
      work: (process, inputs, context) => coordinate(shared, process, inputs, context),
      isWorkedOn: (job) => this.tasks.isWorkedOn(job),
      onTakenOver: (job) => this.jobs.abandon(job),
      onFailure,
    });
  }

  static async open(options: ClusterJobServiceOptions): Promise<ClusterJobService> {
    const opened = new ClusterJobService(options);
    const { storage, processes, resume = false, onFailure, onLine } = options;
    const { registry, entries, artifacts } = opened;
    const jobs = await LocalJobService.open(storage, processes, {
      resume,
      registry,
      onFailure,
      onLine,
    });
    opened.jobs = jobs;
    if (resume) {
      const { cluster } = options.cluster;
      opened.failover = new JobFailover({ ...options, cluster, jobs, registry, entries, artifacts });
    }
    return opened;
  }

  async close(): Promise<void> {
    this.registry.close();
    this.tasks.close();
    await this.failover?.close();
    await this.jobs.close();
  }

  get active(): JobRecord[] {
    return this.jobs.active;
  }

  get hasStopped(): boolean {
    return this.jobs.hasStopped;
  }

  start(process: Process, inputs: unknown, options?: StartOptions): Promise<JobRecord> {
    return this.jobs.start(process, inputs, options);
  }

  async startIdempotent(process: Process, inputs: unknown, options: StartOptions = {}): Promise<StartedJob> {
    const known = options.request && (await this.entries.jobOfRequest(options.request));
    if (known !== undefined) return { job: await this.get(known), repeated: true };
    const started = await this.jobs.startIdempotent(process, inputs, options);
    return started.repeated ? { job: await this.get(started.job.id), repeated: true } : started;
  }

  async get(id: string): Promise<JobRecord> {
    if (this.jobs.isLed(id)) return this.jobs.get(id);
    const stored = await this.entries.get(id);
    if (!stored || hasExpired(stored.entry.job)) throw jobNotFound(id);
    const { folder, job } = stored.entry;
    // Another node led the job. This node must not report the end before its own searches find the tiles of the job.
    if (!stored.isLive) await this.options.cluster.cluster.replica.catchUp();
    if (folder === undefined) return jobRecordOf(stored.entry.job);
    return { ...(await this.artifacts.record(folder)), ...(job.retriedBy && { retriedBy: job.retriedBy }) };
  }

  async status(id: string): Promise<ReportedJob> {
    try {
      const job = await this.get(id);
      this.remember(job);
      return job;
    } catch (error) {
      const last = coordinationUnavailable.is(error) ? await this.lastSeen(id) : undefined;
      if (!last) throw error;
      return { ...last, stale: true };
    }
  }

  private remember(job: JobRecord): void {
    this.seen.delete(job.id);
    this.seen.set(job.id, entrySummaryOf(job));
    if (this.seen.size > MAX_SEEN) this.seen.delete(this.seen.keys().next().value!);
  }

  private async lastSeen(id: string): Promise<JobRecord | undefined> {
    const localRecord = await this.jobs.find(id);
    // The end of a job of this process is newer than what was reported, but a record of an earlier process may be outdated.
    if (localRecord && localRecord.updated >= this.openedAt) return localRecord;
    const summary = this.seen.get(id);
    return summary && jobRecordOf(summary);
  }

  async list(limit = 100, before?: string, wanted: (job: JobRecord) => boolean = () => true) {
    const newest = new Map<string, JobRecord>();
    const add = (entries: StoredJobEntry[]) => {
      for (const { entry } of entries) {
        const job = jobRecordOf(entry.job);
        if ((before === undefined || job.id < before) && !hasExpired(job) && wanted(job))
          newest.set(job.id, job);
      }
    };
    // A job that ends between the reads is in both; the later one counts.
    add(await this.entries.live());
    let ended = 0;
    for await (const part of this.entries.endedBackwards(before)) {
      const sizeBefore = newest.size;
      add(part);
      ended += newest.size - sizeBefore;
      if (ended >= limit) break;
    }
    return [...newest.values()].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit);
  }

  async log(id: string, { after = 0, limit = 1000 } = {}): Promise<LogLine[]> {
    if (this.jobs.isLed(id)) return this.jobs.log(id, { after, limit });
    const stored = await this.entries.get(id);
    if (!stored) throw jobNotFound(id);
    const { folder } = stored.entry;
    if (folder === undefined) return [];
    return (await this.artifacts.log(folder)).filter(({ seq }) => seq > after).slice(0, limit);
  }

  async subscribe(id: string, listener: JobListener): Promise<() => void> {
    if (this.jobs.isLed(id)) return this.jobs.subscribe(id, listener);
    listener(await this.get(id));
    return () => undefined;
  }

  async cancel(id: string): Promise<JobRecord> {
    if (!this.jobs.isLed(id)) await this.failover?.cancel(id);
    else
      await this.jobs.cancel(id).catch((error) => {
        // The job goes on at its new leader.
        if (!jobTakenOver.is(error)) throw error;
      });
    return this.get(id);
  }

  async leaderOf(id: string, alsoEnded = false): Promise<Peer | undefined> {
    if (this.jobs.isLed(id)) return undefined;
    const { cluster } = this.options.cluster;
    const stored = await this.entries.get(id);
    if (!stored || stored.entry.home === cluster.self) return undefined;
    const { home } = stored.entry;
    if (stored.isLive) return cluster.peer(home);
    return alsoEnded && cluster.nodes.some((node) => node.id === home) ? cluster.peer(home) : undefined;
  }

  async file(id: string, name: string): Promise<JobFile | undefined> {
    const { files = {} } = await this.get(id);
    return Object.hasOwn(files, name) ? this.artifacts.file(files[name]!) : this.jobs.file(id, name);
  }
}
