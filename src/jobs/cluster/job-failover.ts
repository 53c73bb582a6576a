/** Goes on with the jobs of nodes that are lost, and forgets old ones. */

import { PeriodicTask } from '../../async/index.js';
import { type Cluster, FailureDetector } from '../../dht/index.js';
import type { TilewrightError } from '../../errors.js';
import type { JobRecord } from '../../storage/index.js';
import { jobDismissed, jobInterrupted } from '../errors.js';
import { GC_INTERVAL_MS } from '../local/job-gc.js';
import { endedWith, hasEnded, recoveredRecord } from '../local/job-records.js';
import type { LocalJobService } from '../local/local-job-service.js';
import type { Process } from '../local/process.js';
import { isRemovable } from '../local/retention.js';
import type { ClusterJobRegistry } from './cluster-job-registry.js';
import type { JobArtifacts, JobInputs } from './job-artifacts.js';
import { type JobEntries, jobRecordOf, type StoredJobEntry } from './job-entries.js';

/** How long a node is away before others go on with its jobs, ms. */
const GRACE_PERIOD_MS = 30_000;
/** Nodes look after each other so often, at least four times in the grace period, ms. */
const CHECK_INTERVAL_MS = 5000;
/** Nodes act one after another, so that mostly one does, ms. */
const RANK_DELAY_MS = 1000;

export interface JobFailoverOptions {
  jobs: LocalJobService;
  board: ClusterJobRegistry;
  documents: JobEntries;
  objects: JobArtifacts;
  cluster: Pick<Cluster, 'self' | 'revokeLocksOf'> & { nodes: readonly { id: string }[] };
  processes: Process[];
  gracePeriodMs?: number | undefined;
  /** Is told of what goes wrong; all of it is tried again. */
  onFailure: (error: unknown) => void;
}

export class JobFailover {
  private readonly gracePeriodMs: number;
  private readonly failureDetector: FailureDetector;
  private readonly task: PeriodicTask;
  private removedAt = -Infinity;
  /** Messages about damaged documents: each is reported once. */
  private readonly reportedDamage = new Set<string>();
  private isClosing = false;

  constructor(private readonly options: JobFailoverOptions) {
    this.gracePeriodMs = options.gracePeriodMs ?? GRACE_PERIOD_MS;
    this.failureDetector = new FailureDetector(this.gracePeriodMs, RANK_DELAY_MS);
    const interval = Math.min(CHECK_INTERVAL_MS, this.gracePeriodMs / 4);
    this.task = new PeriodicTask(() => this.check(), interval, options.onFailure);
  }

  async close(): Promise<void> {
    this.isClosing = true;
    await this.task.close();
  }

  /** Ends a job as cancelled, if this node leads it but does not run it. Other jobs stay as they are. */
  async cancel(id: string): Promise<void> {
    const { jobs, documents, cluster } = this.options;
    const stored = await documents.get(id);
    if (!stored?.isLive || stored.entry.home !== cluster.self) return;
    if (jobs.isLive(id)) return;
    await this.lead(stored, endedWith(jobRecordOf(stored.entry), jobDismissed(id)));
  }

  /** Goes on with jobs whose home is away, and with own ones that are not run. */
  private async check(): Promise<void> {
    const { jobs, documents, cluster, onFailure } = this.options;
    const { nodes, self } = cluster;
    const rank = nodes.findIndex(({ id }) => id === self);
    if (rank < 0) return;
    const present = new Set(nodes.map(({ id }) => id));
    const live = await documents.live(this.onDamaged);
    const homes = live.map(({ entry }) => entry.home);
    this.failureDetector.update(new Set(homes.filter((home) => !present.has(home))));
    for (const stored of live) {
      if (this.isClosing) return;
      const { home, job } = stored.entry;
      try {
        if (home === self) await this.resumeOwn(stored);
        // What is left of its work here ends first, where this node had it before.
        else if (!present.has(home) && !jobs.isLive(job.id)) {
          const late = -this.failureDetector.msUntilTakeover(home, rank);
          if (late >= 0) await this.takeOver(stored, late);
        }
      } catch (error) {
        // The other jobs are not to wait for it.
        onFailure(error);
      }
    }
    if (rank === 0 && performance.now() - this.removedAt > GC_INTERVAL_MS) await this.removeExpired();
  }

  /** Goes on with a job of this home that it does not run. */
  private async resumeOwn(stored: StoredJobEntry): Promise<void> {
    const { jobs, board } = this.options;
    const { id } = stored.entry.job;
    if (jobs.isLive(id) || board.accepting.has(id)) return;
    const own = await jobs.find(id);
    if (own && hasEnded(own)) await board.publishLate(own, stored);
    else await this.takeOver(stored, Infinity);
  }

  /** `late`: how long it could have been taken over already, ms. */
  private async takeOver(stored: StoredJobEntry, late: number): Promise<void> {
    const { job, home } = stored.entry;
    const { objects, cluster, processes } = this.options;
    const process = processes.find(({ id }) => id === job.process);
    const asked = await objects.inputs(job.id);
    if (asked === undefined)
      return this.lead(stored, endedWith(jobRecordOf(stored.entry), jobInterrupted(job.id, false)));
    const record: JobRecord = { ...job, ...asked };
    // Files that were sent lie on the node that is lost.
    const isHere = job.uploads === undefined && (await mayTakeOver(process, asked));
    // Another node may be able to.
    if (!isHere && job.uploads === undefined && late < this.gracePeriodMs) return;
    const next = recoveredRecord(isHere ? record : { ...record, resumable: false }, process);
    const remark =
      home === cluster.self
        ? 'once more, because the node was stopped'
        : `once more, on another node, because node ${home} is away`;
    await this.lead(stored, next, process, remark);
  }

  /**
   * Makes this node the home of a job, whose record is then `next`, and runs the job if it has not ended. No effect if the document has
   * changed, or if this node is just accepting the job.
   */
  private async lead(
    stored: StoredJobEntry,
    next: JobRecord,
    process?: Process,
    remark?: string,
  ): Promise<void> {
    const { jobs, board, cluster } = this.options;
    const { home } = stored.entry;
    if (board.accepting.has(next.id)) return;
    board.accepting.add(next.id);
    try {
      if (!(await board.takeOver(next, stored))) return;
      // Otherwise the claims of the lost node would stay until their leases end.
      if (home !== cluster.self) await cluster.revokeLocksOf(home);
      await jobs.takeOver(process, next, hasEnded(next) ? undefined : remark);
    } finally {
      board.accepting.delete(next.id);
    }
  }

  private readonly onDamaged = (error: TilewrightError): void => {
    if (this.reportedDamage.has(error.message)) return;
    this.reportedDamage.add(error.message);
    this.options.onFailure(error);
  };

  /** Removes from etcd and the shared store the jobs that each node removes from its own catalogue. */
  private async removeExpired(): Promise<void> {
    const { documents, objects, onFailure } = this.options;
    this.removedAt = performance.now();
    await documents.expireRequests();
    for await (const { entry, isLive } of documents.all(this.onDamaged)) {
      const { id } = entry.job;
      if (isLive || !isRemovable(entry.job)) continue;
      try {
        await objects.remove(id);
        await documents.delete(id);
      } catch (error) {
        // The next sweep tries it again.
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
