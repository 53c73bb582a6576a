/** The composition root: creates a running node from a configuration. Only this file connects the parts. */
import { once } from 'node:events';
import { realpath } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { buildServer, cannotListen, type ProxyOptions, requireSafeBinding } from './api/index.js';
import { FolderCoordination } from './coordination/index.js';
import {
  coalesceProcess,
  DerivePool,
  exportProcess,
  fillProcess,
  splitProcess,
  tensorProcess,
} from './derive/index.js';
import { type ClusterConfig, folderOfCluster, localQueries, openCluster } from './dht/index.js';
import { messageOf } from './errors.js';
import {
  applyClassifier,
  CLASSIFIER,
  HyperspectralPool,
  scoreClassifierProcess,
  spectralProcesses,
} from './hyperspectral/index.js';
import { ImageService } from './imagery/index.js';
import { IngestPool, ingestProcess } from './ingest/index.js';
import { ClusterJobService, type LineListener, LocalJobService, verifyProcess } from './jobs/index.js';
import { NodeMetrics } from './metrics/index.js';
import { TileFinder } from './query/index.js';
import { type HostPolicy, NO_HOSTS, type RemoteAccess, readCredentialRules } from './remote/index.js';
import { requireDisjoint, Storage } from './storage/index.js';
import { Subscriptions } from './subscriptions/index.js';
import {
  checkProcess,
  predictProcess,
  Rendezvous,
  scoreProcess,
  storeModelProcess,
  TextureIndex,
  TexturePool,
  textureProcess,
  trainProcess,
} from './training/index.js';
import { version } from './version.js';

export interface NodeConfig extends ProxyOptions {
  /** Data folder. It is created if it does not exist. */
  data: string;
  /** Memory budget of ingest, in addition to the program itself, bytes. */
  memory: number;
  /** Threads and processes used for work. */
  cores: number;
  /** LightGBM model of s2cloudless (text), for Sentinel-2 L1C. */
  cloudModel?: string;
  /** Free space that writes must leave on the disk of the data folder, bytes; 0 for none. Default: 2 % of the disk, 2 GB at most. */
  reserve?: number;
  /** With an object store: disk space for local tile files, bytes. Default: all except the reserve. */
  cache?: number;
  /** Token required for writes and jobs over HTTP. */
  token?: string;
  /** Token required for reads. Without it, reads need no token. */
  readToken?: string;
  /** Origins whose web pages may read; `*` stands for all. Default: all if there is a token, else none. */
  cors?: string[];
  /** Mean requests a second of one address; 0 for no limit. */
  rateLimit?: number;
  /** Folders from which `POST /ingest` may read. */
  allowFolders?: string[];
  /** Hosts that scenes may be fetched from; none by default. */
  hosts?: HostPolicy;
  /** Path of a file with credentials for these hosts. */
  remoteCredentials?: string;
  /** Maximum bytes of an uploaded file. */
  maxUpload?: number;
  /** Structured request log on stderr. */
  log?: boolean;
  /** Set if the node belongs to a cluster or uses an object store. */
  cluster?: Omit<ClusterConfig, 'software' | 'onStatus' | 'onFailure' | 'signal'>;
  /** An address for messages of other nodes alone. Default: they arrive where clients connect. */
  clusterListen?: { host: string; port: number };
  /** Resumes unfinished jobs of an earlier process, and leaves unfinished jobs to the next process, as servers do. */
  resume?: boolean;
  /** Cancels the start if it is aborted before the node is open. It has no effect later. */
  signal?: AbortSignal;
}

export interface TilewrightNode {
  id: string;
  storage: Storage;
  /** The routes. They are reachable over a socket after `listen`, or by `inject`. */
  server: FastifyInstance;
  /** Token with all permissions for the user who runs the node. It is also in the data folder's lock. */
  ownerSecret: string;
  /** Starts to listen and returns the node's address. Throws TW_API_OPEN_BIND for a host other than loopback without a token. */
  listen(host: string, port: number): Promise<string>;
  /** Stops running jobs, waits for writes, and releases the data folder. With `resume`, the next process resumes the jobs. */
  close(): Promise<void>;
}

const DEFAULT_MAX_UPLOAD_BYTES = 20e9;

type Close = () => Promise<void>;

/**
 * Opens the data folder and all parts of the node. If the start fails, closes everything that was opened. Throws the reason of
 * `config.signal` if the signal is aborted during the start.
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
    // An error of closing must not hide the reason of the failed start.
    await closeAll(closes).catch((failure) =>
      process.emitWarning(`after a failed start: ${messageOf(failure)}`),
    );
    throw error;
  }
}

/** The credentials are read again for each job, so that a server sees a new token. Throws TW_REMOTE_CREDENTIALS for a server. */
async function remoteAccess({ hosts = NO_HOSTS, remoteCredentials }: NodeConfig): Promise<RemoteAccess> {
  const readRules = () => readCredentialRules(remoteCredentials, hosts.anyPublic ? process.env : undefined);
  // Most commands of a user's own process fetch nothing.
  if (!hosts.anyPublic) await readRules();
  return { policy: hosts, readRules };
}

/** Opens everything except the data folder. Adds the close function of each part to `closes`, in the order in which they must run. */
async function openServices(storage: Storage, closes: Close[], config: NodeConfig): Promise<TilewrightNode> {
  const {
    memory,
    cores,
    cloudModel,
    allowFolders: allowedFolders = [],
    log = false,
    resume,
    signal,
    maxUpload = DEFAULT_MAX_UPLOAD_BYTES,
  } = config;
  const { token, readToken, rateLimit, cors, publicUrl, trustProxy } = config;
  signal?.throwIfAborted();
  const remote = await remoteAccess(config);
  if (!config.cluster) await assertStandalone(storage);
  const journal = new BufferedLog(log);
  const metrics = new NodeMetrics();
  closes.unshift(async () => metrics.close());
  const cluster =
    config.cluster &&
    (await openCluster(storage, {
      ...config.cluster,
      signal,
      software: version,
      metrics: metrics.cluster({ hasEtcd: config.cluster.etcd.length > 0 }),
      onStatus: journal.info,
      onFailure: journal.warn,
    }));
  if (cluster) closes.unshift(() => cluster.close());
  signal?.throwIfAborted();
  const rendezvous = cluster && new Rendezvous(cluster.signatures);
  const owners = cluster?.owners ?? localQueries(storage.index);
  const finder = new TileFinder(storage, owners);
  const workers = new IngestPool(cores, memory);
  const derive = { storage, finder, workers: new DerivePool(cores) };
  const texture = { storage, workers: new TexturePool(cores) };
  const textures = new TextureIndex(storage);
  const imagery = new ImageService({ storage, finder, owners, cores });
  const analysis = { storage, finder, imagery, workers: new HyperspectralPool(cores) };
  const appliers = { [CLASSIFIER]: applyClassifier.bind(null, analysis) };
  closes.unshift(
    () => workers.close(),
    () => derive.workers.close(),
    () => analysis.workers.close(),
    () => texture.workers.close(),
    () => imagery.close(),
  );
  const ingest = ingestProcess({
    ...{ storage, workers, memory, cloudModel, allowedFolders, remote, cluster },
    metrics: metrics.ingest,
  });
  const processes = [
    ingest,
    fillProcess(derive),
    splitProcess(derive),
    coalesceProcess(derive),
    tensorProcess(derive),
    exportProcess(derive),
    trainProcess({
      storage,
      finder,
      textures,
      cores,
      memory,
      onEpoch: () => metrics.epochs.inc(),
      rendezvous: config.cluster && rendezvous && { url: config.cluster.advertise, doors: rendezvous },
    }),
    storeModelProcess({ storage, finder }),
    checkProcess({ storage, cores }),
    predictProcess({ storage, finder, textures, cores, appliers }),
    scoreProcess({ storage, finder, cores }),
    scoreClassifierProcess(analysis),
    textureProcess(texture),
    ...spectralProcesses(analysis),
    verifyProcess(storage, cluster ? { isOwn: (cell) => cluster.cluster.hasCell(cell) } : {}),
  ];
  metrics.expectProcesses(processes.map(({ id }) => id));
  const onLine: LineListener = (job, line) => {
    journal.job(job, line);
    const { status: state } = line;
    if (state && state !== 'accepted' && state !== 'running')
      metrics.jobsEnded.inc({ process: job.process, state });
  };
  const clusterJobs =
    cluster &&
    (await ClusterJobService.open({
      storage,
      processes,
      cluster,
      resume,
      gracePeriodMs: config.cluster?.grace,
      onFailure: journal.warn,
      onLine,
    }));
  const jobs =
    clusterJobs ??
    (await LocalJobService.open(storage, processes, { resume, onFailure: journal.warn, onLine }));
  const own = new FolderCoordination(storage.dir);
  closes.unshift(() => own.close());
  closes.unshift(async () => {
    await Promise.all([ingest.parts.close(), jobs.close()]);
  });
  signal?.throwIfAborted();
  const { id } = storage.folder.node;
  const subscriptions = new Subscriptions({
    ...{ jobs, ingest, hosts: remote.policy, self: id, isScheduling: resume, onFailure: journal.warn },
    open: cluster ? async () => cluster.coordination : own.open,
    onEnd: (state) => metrics.subscriptionRounds.inc({ state }),
  });
  closes.unshift(() => subscriptions.close());
  const ownerSecret = storage.folder.lock.secret;
  const server = await buildServer(
    {
      version,
      nodeId: id,
      storage,
      finder,
      cluster:
        cluster && clusterJobs && rendezvous
          ? { ...cluster, tasks: clusterJobs.tasks, sceneParts: ingest.parts, rendezvous }
          : undefined,
      imagery,
      textures,
      jobs,
      subscriptions,
      metrics,
      processes: new Map(processes.map((p) => [p.id, p])),
      allowedFolders,
      maxUpload,
    },
    {
      token,
      readToken,
      rateLimit,
      cors,
      ownerSecret,
      log,
      publicUrl,
      trustProxy,
      signatures: cluster?.signatures,
      hasClusterListener: config.clusterListen !== undefined,
    },
  );
  // The server closes after the subscriptions and the jobs, because event streams report the end of the jobs.
  closes.splice(2, 0, () => closeServer(server));
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
      if (config.clusterListen) await listenForNodes(server, config.clusterListen);
      await storage.folder.announce(url);
      metrics.start();
      return url;
    },
    async close() {
      const slots = cluster && cluster.cluster.nodes.length > 1 ? cluster.cluster.ownedSlotCount : 0;
      const report = async () => journal.info(await shutdownSummary(storage, slots));
      // The report reads the storage, which closes last.
      await closeAll(log ? closes.toSpliced(-1, 0, report) : closes);
    },
  };
}

/** Closes the parts one after the other, even if some fail. Throws the first error. */
async function closeAll(closes: Close[]): Promise<void> {
  const errors: unknown[] = [];
  for (const close of closes) await close().catch((error) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}

/** The last log line of a node: its unfinished jobs, and the slots that it owns in a cluster. */
async function shutdownSummary({ catalogue }: Storage, slots: number): Promise<string> {
  let jobs = 0;
  for await (const { record } of catalogue.jobs.scan()) if (record && record.finished === undefined) jobs++;
  const left = [
    ...(jobs > 0 ? [`jobs to resume at the next start: ${jobs}`] : []),
    ...(slots > 0 ? [`it owns ${slots} slots, which other nodes take over after the grace period`] : []),
  ];
  return `stopped; ${left.join('; ') || 'no unfinished work'}`;
}

type Logger = Pick<FastifyInstance['log'], 'info' | 'warn'>;

/**
 * Log of the cluster and of background work. Until the node's log is open, lines are buffered, and errors are emitted as warnings of the
 * process. Without a log, lines are dropped.
 */
class BufferedLog {
  private log: Logger | undefined;
  private readonly waiting: ((log: Logger) => void)[] = [];

  constructor(private readonly isWanted: boolean) {}

  readonly info = (text: string): void => {
    this.write((log) => log.info(text));
  };

  /** Reports an error of background work, which will be repeated. */
  readonly warn = (error: unknown): void => {
    if (this.log) this.log.warn({ err: error }, 'background work failed');
    else process.emitWarning(`background work failed: ${messageOf(error)}`);
  };

  /** A line of the log of a job. */
  readonly job: LineListener = ({ id, process }, { level, text }) => {
    // A failed job is mostly a fault of its inputs, and not of the server.
    this.write((log) => log[level === 'info' ? 'info' : 'warn']({ job: id, process }, text));
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

/** Throws TW_API_CANNOT_LISTEN. */
async function listenForNodes(
  { clusterListener }: FastifyInstance,
  { host, port }: { host: string; port: number },
) {
  try {
    await once(clusterListener.listen(port, host), 'listening');
  } catch (error) {
    throw cannotListen.because(error, host, port, messageOf(error));
  }
}

/** How long downloads may continue when the server stops. */
const DRAIN_TIMEOUT_MS = 3000;

async function closeServer(server: FastifyInstance): Promise<void> {
  const timer = setTimeout(() => {
    for (const listener of [server.server, server.clusterListener]) listener.closeAllConnections();
  }, DRAIN_TIMEOUT_MS);
  await server.close();
  clearTimeout(timer);
}
