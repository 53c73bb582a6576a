/** The jobs of a cluster node: all nodes know them, share their work, and take over the jobs of a lost node. */
import type { OpenCluster, Peer } from '../../dht/index.js';
import type { JobRecord, Storage } from '../../storage/index.js';
import { jobNotFound } from '../errors.js';
import type { JobListener, LineListener } from '../job-execution.js';
import type { LogLine } from '../job-log.js';
import type { Process } from '../job-process.js';
import { hasExpired } from '../job-records.js';
import type { JobFile, JobService, StartedJob, StartOptions } from '../job-service.js';
import { LocalJobService } from '../local-job-service.js';
import { JobArtifacts } from './cluster-job-artifacts.js';
import { coordinate } from './cluster-job-coordinator.js';
import { JobEntries, jobRecordOf } from './cluster-job-entries.js';
import { JobFailover } from './cluster-job-failover.js';
import { ClusterJobRegistry } from './cluster-job-registry.js';
import { TaskExecutor } from './cluster-job-task-executor.js';

export interface ClusterJobServiceOptions {
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

/** Jobs that this node leads are answered from its own records, all others from the entries that their leaders publish. */
export class ClusterJobService implements JobService {
  /** The tasks of this node, for jobs of any leader. */
  readonly tasks: TaskExecutor;
  private jobs!: LocalJobService;
  private readonly registry: ClusterJobRegistry;
  private failover: JobFailover | undefined;
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
    if (await this.jobs.find(id)) return this.jobs.get(id);
    const stored = await this.entries.get(id);
    if (!stored || hasExpired(stored.entry.job)) throw jobNotFound(id);
    const { folder, job } = stored.entry;
    // Another node led the job. This node must not report the end before its own searches find the tiles of the job.
    if (!stored.isLive) await this.options.cluster.cluster.replica.catchUp();
    if (folder === undefined) return jobRecordOf(stored.entry);
    return { ...(await this.artifacts.record(folder)), ...(job.retriedBy && { retriedBy: job.retriedBy }) };
  }

  async list(limit = 100, before?: string, wanted: (job: JobRecord) => boolean = () => true) {
    const records: JobRecord[] = [];
    for await (const { entry } of this.entries.all()) {
      const job = jobRecordOf(entry);
      if ((before === undefined || job.id < before) && !hasExpired(job) && wanted(job)) records.push(job);
    }
    // `records` has a job twice if it ended between the reads of two pages. The map keeps one record of each job.
    const newest = new Map(records.sort((a, b) => (a.id < b.id ? 1 : -1)).map((job) => [job.id, job]));
    return [...newest.values()].slice(0, limit);
  }

  async log(id: string, { after = 0, limit = 1000 } = {}): Promise<LogLine[]> {
    if (await this.jobs.find(id)) return this.jobs.log(id, { after, limit });
    const stored = await this.entries.get(id);
    if (!stored) throw jobNotFound(id);
    const { folder } = stored.entry;
    if (folder === undefined) return [];
    return (await this.artifacts.log(folder)).filter(({ seq }) => seq > after).slice(0, limit);
  }

  async subscribe(id: string, listener: JobListener): Promise<() => void> {
    if (await this.jobs.find(id)) return this.jobs.subscribe(id, listener);
    listener(await this.get(id));
    return () => undefined;
  }

  async cancel(id: string): Promise<JobRecord> {
    if (await this.jobs.find(id)) return this.jobs.cancel(id);
    await this.failover?.cancel(id);
    return this.get(id);
  }

  async leaderOf(id: string, alsoEnded = false): Promise<Peer | undefined> {
    if (await this.jobs.find(id)) return undefined;
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
