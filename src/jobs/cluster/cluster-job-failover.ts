/** Takes over the jobs of lost nodes, and removes old jobs. */
import { PeriodicTask } from '../../async/index.js';
import { type Cluster, FailureDetector } from '../../dht/index.js';
import type { TilewrightError } from '../../errors.js';
import type { JobRecord } from '../../storage/index.js';
import { jobDismissed, jobInterrupted } from '../errors.js';
import { GC_INTERVAL_MS } from '../job-gc.js';
import type { Process } from '../job-process.js';
import { endedWith, hasEnded, isRemovable, recoveredRecord } from '../job-records.js';
import type { LocalJobService } from '../local-job-service.js';
import type { JobArtifacts, JobInputs } from './cluster-job-artifacts.js';
import { type JobEntries, jobRecordOf, type StoredJobEntry } from './cluster-job-entries.js';
import type { ClusterJobRegistry } from './cluster-job-registry.js';

/** Default time that a node may be missing before others take over its jobs. */
const GRACE_PERIOD_MS = 30_000;
/** Interval of the checks; there are at least four within the grace period. */
const CHECK_INTERVAL_MS = 5000;
/** Nodes act one after another, so that usually only one does. */
const RANK_DELAY_MS = 1000;

export interface JobFailoverOptions {
  jobs: LocalJobService;
  registry: ClusterJobRegistry;
  entries: JobEntries;
  artifacts: JobArtifacts;
  cluster: Pick<Cluster, 'self' | 'revokeLocksOf'> & { nodes: readonly { id: string }[] };
  processes: Process[];
  gracePeriodMs?: number | undefined;
  /** Called with errors, after which the work is retried. */
  onFailure: (error: unknown) => void;
}

export class JobFailover {
  private readonly gracePeriodMs: number;
  private readonly failureDetector: FailureDetector;
  private readonly task: PeriodicTask;
  private removedAt = -Infinity;
  /** Messages of damaged entries, each of which is reported once. */
  private readonly reportedDamage = new Set<string>();
  private isClosing = false;

  constructor(private readonly options: JobFailoverOptions) {
    this.gracePeriodMs = options.gracePeriodMs ?? GRACE_PERIOD_MS;
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
    await this.lead(stored, endedWith(jobRecordOf(stored.entry), jobDismissed(id)));
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
    if (rank === 0 && performance.now() - this.removedAt > GC_INTERVAL_MS) await this.removeExpired();
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
      return this.lead(stored, endedWith(jobRecordOf(stored.entry), jobInterrupted(job.id, false)));
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

  /** Removes expired jobs from etcd and the object store; each node removes them from its own catalogue. */
  private async removeExpired(): Promise<void> {
    const { entries, artifacts, onFailure } = this.options;
    this.removedAt = performance.now();
    await entries.expireRequests();
    for await (const { entry, isLive } of entries.all(this.onDamaged)) {
      const { id } = entry.job;
      if (isLive || !isRemovable(entry.job)) continue;
      try {
        await artifacts.remove(id);
        await entries.delete(id);
      } catch (error) {
        // The next collection tries again.
        onFailure(error);
      }
    }
  }
}

async function mayTakeOver(
  process: Process | undefined,
  { inputs, given = inputs }: JobInputs,
): Promise<boolean> {
  return process?.canTakeOver === undefined || process.canTakeOver(given);
}
