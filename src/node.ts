/** The composition root: configuration in, a running node out. The only place that wires the parts together. */
import { realpath } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import {
  AnalysisPool,
  anomaly,
  applyClassifier,
  CLASSIFIER,
  classify,
  clustering,
  continuum,
  indices,
  mapProcess,
  mnf,
  pca,
  smooth,
  spectralMatching,
  spectralResampling,
  statsProcess,
  unmix,
} from './analysis/index.js';
import { buildServer, cannotListen, type ProxyOptions, requireSafeBinding } from './api/index.js';
import { coalesceProcess, DerivePool, fillProcess, splitProcess, tensorProcess } from './derive/index.js';
import { type ClusterConfig, folderOfCluster, localQueries, openCluster } from './dht/index.js';
import { messageOf } from './errors.js';
import { ImageService } from './imagery/index.js';
import { IngestPool, ingestProcess } from './ingest/index.js';
import { ClusterJobService, type LineListener, LocalJobService, verifyProcess } from './jobs/index.js';
import { NodeMetrics } from './metrics/index.js';
import { TileFinder } from './query/index.js';
import { requireDisjoint, Storage } from './storage/index.js';
import {
  predictProcess,
  Rendezvous,
  storeModelProcess,
  TextureIndex,
  TexturePool,
  textureProcess,
  trainProcess,
} from './training/index.js';
import { version } from './version.js';

export interface NodeConfig extends ProxyOptions {
  /** Data folder; made where it is missing. */
  data: string;
  /** Bytes that ingest may take beside what the program itself does. */
  memory: number;
  /** Threads and processes used for work. */
  cores: number;
  /** LightGBM model of s2cloudless (text), for Sentinel-2 L1C. */
  cloudModel?: string;
  /** Bytes of the data folder's disk that are left free; 0 for none. By default 2 % of it, 2 GB at most. */
  reserve?: number;
  /** Where the node has a shared store: bytes that files of tiles may take here; all but the reserve by default. */
  cache?: number;
  /** Token that writes and jobs must carry over HTTP. */
  token?: string;
  /** Token that reads must carry; without one they are open. */
  readToken?: string;
  /** Requests a second that one address may make; 0 for any number. */
  rateLimit?: number;
  /** Folders from which `POST /ingest` may read. */
  allowFolders?: string[];
  /** The most bytes of an uploaded file. */
  maxUpload?: number;
  /** Structured request log on stderr. */
  log?: boolean;
  /** Where the node is one of a cluster, or keeps its tiles in a shared store. */
  cluster?: Omit<ClusterConfig, 'software' | 'onStatus' | 'onFailure' | 'signal'>;
  /** Takes up the jobs that an earlier process has left, and leaves its own to the next; servers do. */
  resume?: boolean;
  /** Breaks off the start if it is aborted before the node is open. It has no effect later. */
  signal?: AbortSignal;
}

export interface TilewrightNode {
  id: string;
  storage: Storage;
  /** The routes; reached over a socket after `listen`, or by `inject`. */
  server: FastifyInstance;
  /** Lets the user who runs the node do everything; also in the data folder's lock. */
  ownerSecret: string;
  /** Starts to listen and returns the node's address. Refuses to go beyond loopback without a token. */
  listen(host: string, port: number): Promise<string>;
  /** Stops running jobs, leaves them to the next process where this one was to resume them, waits for what is being written, and frees the data folder. */
  close(): Promise<void>;
}

const DEFAULT_MAX_UPLOAD_BYTES = 20e9;

type Close = () => Promise<void>;

/**
 * Opens the data folder and all parts of the node. If the start fails, everything that was opened is closed again. Throws the reason of
 * `config.signal` if that is aborted during the start.
 */
export async function openNode(config: NodeConfig): Promise<TilewrightNode> {
  const { data, reserve, cache, allowFolders = [], signal } = config;
  const allowedFolders = await Promise.all(allowFolders.map((folder) => realpath(folder)));
  if (config.cluster) await requireDisjoint(data, config.cluster.store);
  signal?.throwIfAborted();
  const storage = await Storage.open(data, { reserve, cache });
  const closes = [() => storage.close()];
  try {
    return await openServices(storage, closes, { ...config, allowFolders: allowedFolders });
  } catch (error) {
    // The caller needs the reason of the failed start.
    await closeAll(closes).catch((failure) =>
      process.emitWarning(`after a failed start: ${messageOf(failure)}`),
    );
    throw error;
  }
}

/** Opens everything but the data folder. Adds to `closes`, in the order in which the parts must close, how each opened part is closed. */
async function openServices(storage: Storage, closes: Close[], config: NodeConfig): Promise<TilewrightNode> {
  const {
    memory,
    cores,
    cloudModel,
    allowFolders: allowedFolders = [],
    log = false,
    resume,
    signal,
  } = config;
  const { token, readToken, rateLimit, publicUrl, trustProxy, maxUpload = DEFAULT_MAX_UPLOAD_BYTES } = config;
  signal?.throwIfAborted();
  if (!config.cluster) await assertStandalone(storage);
  const journal = new BufferedLog(log);
  const metrics = new NodeMetrics();
  closes.unshift(async () => metrics.close());
  const cluster =
    config.cluster &&
    (await openCluster(storage, {
      ...config.cluster,
      ...(signal && { signal }),
      software: version,
      metrics: metrics.cluster({ hasEtcd: config.cluster.etcd.length > 0 }),
      onStatus: journal.info,
      onFailure: journal.warn,
    }));
  if (cluster) closes.unshift(() => cluster.close());
  signal?.throwIfAborted();
  const rendezvous = cluster && new Rendezvous(cluster.secret);
  const owners = cluster?.owners ?? localQueries(storage.index);
  const finder = new TileFinder(storage, owners);
  const workers = new IngestPool(cores, memory);
  const wrangle = { storage, finder, workers: new DerivePool(cores) };
  const texture = { storage, workers: new TexturePool(cores) };
  const textures = new TextureIndex(storage);
  const imagery = new ImageService({ storage, finder, owners, cores });
  const analysis = { storage, finder, imagery, workers: new AnalysisPool(cores) };
  const appliers = { [CLASSIFIER]: applyClassifier.bind(null, analysis) };
  closes.unshift(
    () => workers.close(),
    () => wrangle.workers.close(),
    () => analysis.workers.close(),
    () => texture.workers.close(),
    () => imagery.close(),
  );
  const processes = [
    ingestProcess({ storage, workers, memory, cloudModel, allowedFolders, metrics: metrics.ingest }),
    fillProcess(wrangle),
    splitProcess(wrangle),
    coalesceProcess(wrangle),
    tensorProcess(wrangle),
    trainProcess({
      ...{ storage, finder, textures, cores, memory },
      onEpoch: () => metrics.epochs.inc(),
      ...(config.cluster &&
        rendezvous && { rendezvous: { url: config.cluster.advertise, doors: rendezvous } }),
    }),
    storeModelProcess({ storage, finder }),
    predictProcess({ storage, finder, cores, appliers }),
    textureProcess(texture),
    statsProcess(analysis),
    mapProcess(analysis, pca),
    mapProcess(analysis, mnf),
    mapProcess(analysis, anomaly),
    mapProcess(analysis, spectralMatching),
    mapProcess(analysis, unmix),
    mapProcess(analysis, classify),
    mapProcess(analysis, indices),
    mapProcess(analysis, smooth),
    mapProcess(analysis, spectralResampling),
    mapProcess(analysis, continuum),
    mapProcess(analysis, clustering),
    verifyProcess(storage, cluster ? { isOwn: (cell) => cluster.cluster.hasCell(cell) } : {}),
  ];
  metrics.expectProcesses(processes.map(({ id }) => id));
  const onLine: LineListener = (job, line) => {
    journal.job(job, line);
    const { status: state } = line;
    if (state && state !== 'accepted' && state !== 'running')
      metrics.jobsEnded.inc({ process: job.process, state });
  };
  const together =
    cluster &&
    (await ClusterJobService.open({
      storage,
      processes,
      cluster,
      ...(resume !== undefined && { resume }),
      ...(config.cluster?.grace !== undefined && { gracePeriodMs: config.cluster.grace }),
      onFailure: journal.warn,
      onLine,
    }));
  const jobs =
    together ?? (await LocalJobService.open(storage, processes, { resume, onFailure: journal.warn, onLine }));
  closes.unshift(() => jobs.close());
  signal?.throwIfAborted();
  const { id } = storage.folder.node;
  const ownerSecret = storage.folder.lock.secret;
  const server = await buildServer(
    {
      version,
      nodeId: id,
      storage,
      finder,
      cluster: cluster && together && rendezvous && { ...cluster, tasks: together.tasks, rendezvous },
      imagery,
      textures,
      jobs,
      metrics,
      processes: new Map(processes.map((p) => [p.id, p])),
      allowedFolders,
      maxUpload,
    },
    {
      ...{ token, readToken, rateLimit, ownerSecret, log },
      ...(publicUrl !== undefined && { publicUrl }),
      ...(trustProxy && { trustProxy }),
      ...(cluster && { secret: cluster.secret }),
    },
  );
  // After the jobs, because event streams report the end of the jobs.
  closes.splice(1, 0, () => closeServer(server));
  signal?.throwIfAborted();
  if (log) journal.open(server.log);
  return {
    id,
    storage,
    server,
    ownerSecret,
    async listen(host, port) {
      requireSafeBinding(host, token ?? readToken);
      const url = await server.listen({ host, port }).catch((error) => {
        throw cannotListen.because(error, host, port, messageOf(error));
      });
      await storage.folder.announce(url);
      metrics.start();
      return url;
    },
    async close() {
      const slots = cluster && cluster.cluster.nodes.length > 1 ? cluster.cluster.ownedSlotCount : 0;
      const report = async () => journal.info(await shutdownSummary(storage, slots));
      // The report is the last use of the storage, which closes last.
      await closeAll(log ? closes.toSpliced(-1, 0, report) : closes);
    },
  };
}

/** Closes one part after the other, even if some fail. Throws the first error. */
async function closeAll(closes: Close[]): Promise<void> {
  const errors: unknown[] = [];
  for (const close of closes) await close().catch((error) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}

/** What a node says at its end: what is left to do. `slots` are those that it owns in a cluster. */
async function shutdownSummary({ catalogue }: Storage, slots: number): Promise<string> {
  let jobs = 0;
  for await (const { record } of catalogue.jobs.scan()) if (record && record.finished === undefined) jobs++;
  const left = [
    ...(jobs > 0 ? [`jobs that go on at the next start: ${jobs}`] : []),
    ...(slots > 0 ? [`it owns ${slots} slots, which others take over after the grace period`] : []),
  ];
  return `stopped; ${left.join('; ') || 'nothing is left to do'}`;
}

type Logger = Pick<FastifyInstance['log'], 'info' | 'warn' | 'error'>;

/**
 * What a node reports of its cluster and of work in the background: lines of its log, if it has one. Until the log is open the lines wait,
 * and an error is a warning of the process.
 */
class BufferedLog {
  private log: Logger | undefined;
  private readonly waiting: ((log: Logger) => void)[] = [];

  constructor(private readonly isWanted: boolean) {}

  readonly info = (text: string): void => {
    this.write((log) => log.info(text));
  };

  /** Of what goes wrong in the background, and is tried again. */
  readonly warn = (error: unknown): void => {
    if (this.log) this.log.warn({ err: error }, 'work in the background failed');
    else process.emitWarning(`work in the background failed: ${messageOf(error)}`);
  };

  /** A line of the log of a job. */
  readonly job: LineListener = ({ id, process }, { level, text }) => {
    this.write((log) => log[level === 'warning' ? 'warn' : level]({ job: id, process }, text));
  };

  open(log: Logger): void {
    this.log = log;
    for (const write of this.waiting.splice(0)) write(log);
  }

  private write(write: (log: Logger) => void): void {
    if (this.log) write(this.log);
    else if (this.isWanted) this.waiting.push(write);
  }
}

/** Throws TW_DHT_FOLDER_OF_CLUSTER. */
async function assertStandalone(storage: Storage): Promise<void> {
  const replica = await storage.replica();
  if (replica) throw folderOfCluster(storage.dir, replica.cluster);
}

/** How long downloads may go on when the server stops, ms. */
const DRAIN_TIMEOUT_MS = 3000;

async function closeServer(server: FastifyInstance): Promise<void> {
  const timer = setTimeout(() => server.server.closeAllConnections(), DRAIN_TIMEOUT_MS);
  await server.close();
  clearTimeout(timer);
}
