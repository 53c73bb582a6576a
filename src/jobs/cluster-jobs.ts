/** Jobs of a node that is one of many: all nodes know of them, do their work together, and go on with those of a node that is lost. */
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { coordinationUnavailable, type OpenCluster, outcomeUnknown, type Peer } from '../dht/index.js';
import { TilewrightError } from '../errors.js';
import { type JobRecord, newVersion, type ObjectStore, type Storage } from '../storage/index.js';
import { type DistributeOptions, distribute } from './distribute.js';
import { jobInterrupted, jobNotFound, jobTakenOver } from './errors.js';
import type { JobBoard } from './job-board.js';
import { type JobDocument, JobDocuments, recordOf, type StoredJob, summaryOf } from './job-documents.js';
import { type LogLine, MOST_LINES, readLog } from './job-log.js';
import { Jobs, type StartOptions } from './job-runner.js';
import { afterDeath, hasEnded } from './job-store.js';
import type { JobFile, JobsView } from './jobs-view.js';
import type { JobListener } from './live-job.js';
import type { JobContext, Process } from './process.js';
import { Shares } from './share.js';
import type { RequestKey } from './started-requests.js';

/** Progress is told to other nodes at most so often, ms, and waits so long for the coordination store. */
const PROGRESS_INTERVAL = 5000;
const PROGRESS_PATIENCE = 1000;
/** After a failed attempt to tell a state, ms. */
const PAUSE = 1000;
/** How long a node is away before others go on with its jobs, ms. */
const GRACE = 30_000;
/** Nodes look after each other so often, at least four times in the grace period, ms. */
const LOOK_INTERVAL = 5000;
/** Nodes act one after another, so that mostly one does, ms. */
const TURN = 1000;
/** What is known of a job that has ended is kept as long as its files, ms; it is looked for so often. */
const KEPT = 7 * 86_400_000;
const SWEEP_INTERVAL = 3_600_000;

export interface ClusterJobsOptions {
  storage: Storage;
  processes: Process[];
  cluster: OpenCluster;
  resume?: boolean;
  grace?: number;
  /** Is told of what goes wrong in the background; all of it is tried again. */
  onFailure: (error: unknown) => void;
}

/** What was asked for, as an object of the store. */
type Asked = Pick<JobRecord, 'inputs' | 'given'>;

const askedName = (id: string) => `jobs/${id}/asked.json`;

/**
 * Invariants: a job has one home, the node that its document names, and only that changes the document, by comparing the revision that it
 * knows; a state is told here after the document says so. `revisions` has the jobs of this home that have not ended.
 */
export class ClusterJobs implements JobBoard, JobsView {
  /** The parts of jobs that other nodes lead, and of own ones, that this node works on. */
  readonly shares: Shares;
  private jobs!: Jobs;
  private readonly documents: JobDocuments;
  private readonly objects: ObjectStore;
  private readonly home: string;
  private readonly revisions = new Map<string, number>();
  private readonly toldAt = new Map<string, number>();
  /** Jobs whose document is there and that are not run yet. */
  private readonly accepting = new Set<string>();
  /** When a home was first seen to be away. */
  private readonly missing = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> | undefined;
  private sweptAt = -Infinity;
  private closing = false;

  private constructor(private readonly options: ClusterJobsOptions) {
    const { storage, processes, cluster } = options;
    this.documents = new JobDocuments(cluster.coordination);
    this.objects = cluster.objects;
    this.home = cluster.cluster.self;
    this.shares = new Shares({ storage, objects: cluster.objects, cluster: cluster.cluster, processes });
  }

  static async open(options: ClusterJobsOptions): Promise<ClusterJobs> {
    const board = new ClusterJobs(options);
    const { storage, processes, resume = false } = options;
    board.jobs = await Jobs.open(storage, processes, { resume, board });
    if (resume) board.lookLater();
    return board;
  }

  async close(): Promise<void> {
    this.closing = true;
    clearTimeout(this.timer);
    this.shares.close();
    await this.looking;
    await this.jobs.close();
  }

  // As a board

  find(request: RequestKey): Promise<string | undefined> {
    return this.documents.requested(request);
  }

  async accept(job: JobRecord, request?: RequestKey): Promise<string | undefined> {
    const { id, inputs, given } = job;
    this.accepting.add(id);
    try {
      const asked: Asked = { inputs, given };
      await this.objects.put(askedName(id), Buffer.from(JSON.stringify(asked)));
      const added = await this.documents.add(this.documentOf(job), request);
      if ('revision' in added) {
        this.revisions.set(id, added.revision);
        return undefined;
      }
      await this.objects.delete([askedName(id)]);
      return added.known;
    } catch (error) {
      this.accepting.delete(id);
      throw error;
    }
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
      if (jobTakenOver.is(error)) this.jobs.drop(job.id);
      // The next progress tells it, or the next state.
      else if (!isUnavailable(error)) throw error;
    }
  }

  async isOurs(job: JobRecord): Promise<boolean> {
    for (;;) {
      const stored = await this.documents.get(job.id);
      if (!stored) {
        // It was there before the node came into the cluster.
        await this.accept(job);
        return true;
      }
      if (!stored.live || stored.document.home !== this.home) return false;
      const { set, current } = await this.documents.change(this.documentOf(job), stored.revision);
      if (!set) continue;
      this.revisions.set(job.id, current!.revision);
      return true;
    }
  }

  retried(job: string, by: string): Promise<void> {
    return this.documents.amend(job, (document) => ({
      ...document,
      job: { ...document.job, retriedBy: by },
    }));
  }

  readonly work = (process: Process, inputs: unknown, context: JobContext): Promise<unknown> => {
    const { cluster, peers, secret } = this.options.cluster;
    const options: DistributeOptions = { cluster, peers, secret, shares: this.shares };
    return distribute(options, process, inputs, context);
  };

  // As a view

  get hasStopped(): boolean {
    return this.jobs.hasStopped;
  }

  start(process: Process, inputs: unknown, options?: StartOptions): Promise<JobRecord> {
    return this.jobs.start(process, inputs, options);
  }

  async startOnce(process: Process, inputs: unknown, options: StartOptions & { request: RequestKey }) {
    const known = await this.find(options.request);
    if (known !== undefined) return { job: await this.get(known), repeated: true };
    const started = await this.jobs.startNew(process, inputs, options);
    return started.repeated ? { job: await this.get(started.job.id), repeated: true } : started;
  }

  async get(id: string): Promise<JobRecord> {
    const own = await this.jobs.find(id);
    if (own) return own;
    const stored = await this.documents.get(id);
    if (!stored) throw jobNotFound(id);
    const { folder, job } = stored.document;
    if (folder === undefined) return recordOf(stored.document);
    const record = JSON.parse((await this.objects.get(`${folder}/record.json`)).toString()) as JobRecord;
    return { ...record, ...(job.retriedBy && { retriedBy: job.retriedBy }) };
  }

  async list(limit = 100, before?: string, wanted: (job: JobRecord) => boolean = () => true) {
    const found: JobRecord[] = [];
    for await (const { document } of this.documents.all()) {
      const job = recordOf(document);
      if ((before === undefined || job.id < before) && wanted(job)) found.push(job);
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
    const text = (await this.objects.get(`${folder}/log.ndjson`)).toString();
    const lines = text.split('\n').filter((line) => line !== '');
    return lines
      .map((line) => JSON.parse(line) as LogLine)
      .filter(({ seq }) => seq > after)
      .slice(0, limit);
  }

  async subscribe(id: string, listener: JobListener): Promise<() => void> {
    if (await this.jobs.find(id)) return this.jobs.subscribe(id, listener);
    listener(await this.get(id));
    return () => undefined;
  }

  async cancel(id: string): Promise<JobRecord> {
    return (await this.jobs.find(id)) ? this.jobs.cancel(id) : this.get(id);
  }

  async retry(id: string, process: Process, terms?: (given: unknown) => unknown): Promise<JobRecord> {
    return this.jobs.retryOf(await this.get(id), process, terms);
  }

  async homeOf(id: string, alsoEnded = false): Promise<Peer | undefined> {
    if (await this.jobs.find(id)) return undefined;
    const stored = await this.documents.get(id);
    if (!stored || stored.document.home === this.home) return undefined;
    const { cluster } = this.options.cluster;
    const { home } = stored.document;
    if (stored.live) return cluster.peer(home);
    return alsoEnded && cluster.nodes.some((node) => node.id === home) ? cluster.peer(home) : undefined;
  }

  async file(id: string, name: string): Promise<JobFile | undefined> {
    const object = (await this.get(id)).files?.[name];
    if (object === undefined) return this.jobs.file(id, name);
    const info = await this.objects.head(object);
    return info && { bytes: info.bytes, open: (): Promise<Readable> => this.objects.stream(object) };
  }

  // Documents

  private documentOf(job: JobRecord): JobDocument {
    const { status, results } = job;
    const hasResults = status === 'successful' || (status === 'dismissed' && results !== undefined);
    return { home: this.home, job: summaryOf(job), ...(hasResults && { hasResults }) };
  }

  /** Waits for the stores as long as it takes, or until the node stops: then the next process tells it. */
  private async publishState(job: JobRecord): Promise<void> {
    for (;;) {
      try {
        if (hasEnded(job)) await this.publishEnd(job);
        else await this.publishOnce(job);
        return;
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        this.options.onFailure(error);
        if (this.closing) return;
        await sleep(PAUSE);
      }
    }
  }

  private async publishOnce(job: JobRecord, patience?: number): Promise<void> {
    for (;;) {
      const revision = this.revisions.get(job.id)!;
      const { set, current } = await this.documents.change(this.documentOf(job), revision, patience);
      if (current?.document.home !== this.home) throw jobTakenOver(job.id);
      this.revisions.set(job.id, current.revision);
      if (set) return;
    }
  }

  private async publishEnd(job: JobRecord): Promise<void> {
    const { id } = job;
    const folder = `jobs/${id}/${newVersion()}`;
    const lines = await readLog(this.options.storage.catalogue, id, 0, MOST_LINES);
    const log = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    await this.objects.put(`${folder}/record.json`, Buffer.from(JSON.stringify(job)));
    await this.objects.put(`${folder}/log.ndjson`, Buffer.from(log));
    while (!(await this.documents.end({ ...this.documentOf(job), folder }, this.revisions.get(id)!))) {
      const stored = await this.documents.get(id);
      if (!stored?.live || stored.document.home !== this.home) throw jobTakenOver(id);
      this.revisions.set(id, stored.revision);
    }
    this.revisions.delete(id);
    this.toldAt.delete(id);
  }

  // Lost homes

  private get grace(): number {
    return this.options.grace ?? GRACE;
  }

  private lookLater(): void {
    this.timer = setTimeout(
      () => {
        this.looking = this.look()
          .catch((error) => this.options.onFailure(error))
          .finally(() => {
            if (!this.closing) this.lookLater();
          });
      },
      Math.min(LOOK_INTERVAL, this.grace / 4),
    ).unref();
  }

  /** Goes on with jobs whose home is away, and with own ones that are not run. */
  private async look(): Promise<void> {
    const { nodes } = this.options.cluster.cluster;
    const rank = nodes.findIndex(({ id }) => id === this.home);
    if (rank < 0) return;
    const present = new Set(nodes.map(({ id }) => id));
    for (const id of this.missing.keys()) if (present.has(id)) this.missing.delete(id);
    const away = (home: string) => {
      const now = performance.now();
      const since = this.missing.get(home) ?? now;
      this.missing.set(home, since);
      return now - since - this.grace - rank * TURN;
    };
    for (const stored of await this.documents.live()) {
      if (this.closing) return;
      const { home, job } = stored.document;
      const late = present.has(home) ? -1 : away(home);
      try {
        if (home === this.home) await this.pickUp(stored);
        // What is left of its work here ends first, where this node had it before.
        else if (late >= 0 && !this.jobs.isLive(job.id)) await this.takeOver(stored, late);
      } catch (error) {
        // The other jobs are not to wait for it.
        this.options.onFailure(error);
        this.accepting.delete(job.id);
      }
    }
    if (rank === 0 && performance.now() - this.sweptAt > SWEEP_INTERVAL) await this.sweep();
  }

  /** Goes on with a job of this home that it does not run. */
  private async pickUp(stored: StoredJob): Promise<void> {
    const { id } = stored.document.job;
    if (this.jobs.isLive(id)) this.accepting.delete(id);
    if (this.jobs.isLive(id) || this.accepting.has(id)) return;
    const own = await this.jobs.find(id);
    if (!own || !hasEnded(own)) return this.takeOver(stored, Infinity);
    // Its end was written here and not told.
    this.revisions.set(own.id, stored.revision);
    await this.publishState(own);
  }

  /** `late`: how long it could have been taken over already, ms. */
  private async takeOver({ document, revision }: StoredJob, late: number): Promise<void> {
    const { job, home } = document;
    const { processes } = this.options;
    const process = processes.find(({ id }) => id === job.process);
    const asked = JSON.parse((await this.objects.get(askedName(job.id))).toString()) as Asked;
    const record: JobRecord = { ...job, ...asked };
    // Files that were sent lie on the node that is lost.
    const isHere = job.uploads === undefined && (await mayTakeOver(process, asked));
    // Another node may be able to.
    if (!isHere && job.uploads === undefined && late < this.grace) return;
    const next = afterDeath(isHere ? record : { ...record, resumable: false }, process);
    const remark =
      home === this.home
        ? 'once more, because the node was stopped'
        : `once more, on another node, because node ${home} is away`;
    this.accepting.add(job.id);
    const { set, current } = await this.documents.change(this.documentOf(next), revision);
    if (set) {
      this.revisions.set(job.id, current!.revision);
      await this.jobs.takeOver(process, next, remark);
    }
    this.accepting.delete(job.id);
  }

  /** Forgets jobs that have ended long ago. */
  private async sweep(): Promise<void> {
    this.sweptAt = performance.now();
    await this.documents.forgetRequests();
    for await (const { document, live } of this.documents.all()) {
      const { id, finished = Infinity } = document.job;
      if (live || finished > Date.now() - KEPT) continue;
      const names: string[] = [];
      for await (const { name } of this.objects.list(`jobs/${id}/`)) names.push(name);
      await this.objects.delete(names);
      await this.documents.forget(id);
    }
  }
}

async function mayTakeOver(
  process: Process | undefined,
  { inputs, given = inputs }: Asked,
): Promise<boolean> {
  return process?.canTakeOver === undefined || process.canTakeOver(given);
}

/** Whether a store did not answer. */
function isUnavailable(error: unknown): boolean {
  return (
    coordinationUnavailable.is(error) ||
    outcomeUnknown.is(error) ||
    (error instanceof TilewrightError && error.status === 503 && !jobInterrupted.is(error))
  );
}
