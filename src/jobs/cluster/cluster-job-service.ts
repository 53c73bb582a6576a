/** Jobs of a node that is one of many: all nodes know of them, do their work together, and go on with those of a node that is lost. */
import type { OpenCluster, Peer } from '../../dht/index.js';
import type { JobRecord, Storage } from '../../storage/index.js';
import { jobNotFound } from '../errors.js';
import type { RequestKey } from '../local/idempotency-keys.js';
import type { JobListener } from '../local/job-execution.js';
import type { LogLine } from '../local/job-log.js';
import type { JobFile, JobsView } from '../local/job-service.js';
import { Jobs, type StartOptions } from '../local/local-job-service.js';
import type { Process } from '../local/process.js';
import { hasExpired } from '../local/retention.js';
import { ClusterBoard } from './cluster-job-registry.js';
import { JobObjects } from './job-artifacts.js';
import { distribute } from './job-coordinator.js';
import { JobDocuments, recordOf } from './job-entries.js';
import { LostJobs } from './job-failover.js';
import { Shares } from './task-executor.js';

export interface ClusterJobsOptions {
  storage: Storage;
  processes: Process[];
  cluster: OpenCluster;
  resume?: boolean;
  grace?: number;
  /** Is told of what goes wrong in the background; all of it is tried again. */
  onFailure: (error: unknown) => void;
}

/** Jobs that this node leads are answered from its own records, others from what their homes have told all nodes. */
export class ClusterJobs implements JobsView {
  /** The parts of jobs that other nodes lead, and of own ones, that this node works on. */
  readonly shares: Shares;
  private jobs!: Jobs;
  private readonly board: ClusterBoard;
  private lost: LostJobs | undefined;
  private readonly documents: JobDocuments;
  private readonly objects: JobObjects;

  private constructor(private readonly options: ClusterJobsOptions) {
    const { storage, processes, onFailure } = options;
    const { cluster, peers, objects, coordination } = options.cluster;
    this.documents = new JobDocuments(coordination);
    this.objects = new JobObjects(objects);
    this.shares = new Shares({ storage, objects, cluster, processes });
    const shared = { cluster, peers, shares: this.shares };
    this.board = new ClusterBoard({
      ...{ documents: this.documents, objects: this.objects, catalogue: storage.catalogue },
      home: cluster.self,
      work: (process, inputs, context) => distribute(shared, process, inputs, context),
      isWorkedOn: (job) => this.shares.isWorkedOn(job),
      onTakenOver: (job) => this.jobs.drop(job),
      onFailure,
    });
  }

  static async open(options: ClusterJobsOptions): Promise<ClusterJobs> {
    const opened = new ClusterJobs(options);
    const { storage, processes, resume = false, grace, onFailure } = options;
    const { board, documents, objects } = opened;
    opened.jobs = await Jobs.open(storage, processes, { resume, board, onFailure });
    if (resume) {
      const { cluster } = options.cluster;
      const { jobs } = opened;
      opened.lost = new LostJobs({ jobs, board, documents, objects, cluster, processes, grace, onFailure });
    }
    return opened;
  }

  async close(): Promise<void> {
    this.board.close();
    this.shares.close();
    await this.lost?.close();
    await this.jobs.close();
  }

  get hasStopped(): boolean {
    return this.jobs.hasStopped;
  }

  start(process: Process, inputs: unknown, options?: StartOptions): Promise<JobRecord> {
    return this.jobs.start(process, inputs, options);
  }

  async startOnce(process: Process, inputs: unknown, options: StartOptions & { request: RequestKey }) {
    const known = await this.documents.requested(options.request);
    if (known !== undefined) return { job: await this.get(known), repeated: true };
    const started = await this.jobs.startNew(process, inputs, options);
    return started.repeated ? { job: await this.get(started.job.id), repeated: true } : started;
  }

  async get(id: string): Promise<JobRecord> {
    if (await this.jobs.find(id)) return this.jobs.get(id);
    const stored = await this.documents.get(id);
    if (!stored || hasExpired(stored.document.job)) throw jobNotFound(id);
    const { folder, job } = stored.document;
    // Another node led the job. This node must not report the end before its own searches find the job's tiles.
    if (!stored.live) await this.options.cluster.cluster.replica.catchUp();
    if (folder === undefined) return recordOf(stored.document);
    return { ...(await this.objects.record(folder)), ...(job.retriedBy && { retriedBy: job.retriedBy }) };
  }

  async list(limit = 100, before?: string, wanted: (job: JobRecord) => boolean = () => true) {
    const found: JobRecord[] = [];
    for await (const { document } of this.documents.all()) {
      const job = recordOf(document);
      if ((before === undefined || job.id < before) && !hasExpired(job) && wanted(job)) found.push(job);
    }
    // One that has ended between two reads is there twice.
    const newest = new Map(found.sort((a, b) => (a.id < b.id ? 1 : -1)).map((job) => [job.id, job]));
    return [...newest.values()].slice(0, limit);
  }

  async log(id: string, { after = 0, limit = 1000 } = {}): Promise<LogLine[]> {
    if (await this.jobs.find(id)) return this.jobs.log(id, { after, limit });
    const stored = await this.documents.get(id);
    if (!stored) throw jobNotFound(id);
    const { folder } = stored.document;
    if (folder === undefined) return [];
    return (await this.objects.log(folder)).filter(({ seq }) => seq > after).slice(0, limit);
  }

  async subscribe(id: string, listener: JobListener): Promise<() => void> {
    if (await this.jobs.find(id)) return this.jobs.subscribe(id, listener);
    listener(await this.get(id));
    return () => undefined;
  }

  async cancel(id: string): Promise<JobRecord> {
    if (await this.jobs.find(id)) return this.jobs.cancel(id);
    await this.lost?.cancel(id);
    return this.get(id);
  }

  async retry(id: string, process: Process, terms?: (given: unknown) => unknown): Promise<JobRecord> {
    return this.jobs.retryOf(await this.get(id), process, terms);
  }

  async homeOf(id: string, alsoEnded = false): Promise<Peer | undefined> {
    if (await this.jobs.find(id)) return undefined;
    const { cluster } = this.options.cluster;
    const stored = await this.documents.get(id);
    if (!stored || stored.document.home === cluster.self) return undefined;
    const { home } = stored.document;
    if (stored.live) return cluster.peer(home);
    return alsoEnded && cluster.nodes.some((node) => node.id === home) ? cluster.peer(home) : undefined;
  }

  async file(id: string, name: string): Promise<JobFile | undefined> {
    const { files = {} } = await this.get(id);
    return Object.hasOwn(files, name) ? this.objects.file(files[name]!) : this.jobs.file(id, name);
  }
}
