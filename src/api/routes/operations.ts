/** Health, readiness and Prometheus metrics of the node, and its OpenAPI document. */
import { raceAbort } from '../../async/index.js';
import { Snapshot } from '../../metrics/index.js';
import { notReady } from '../errors.js';
import { baseUrl } from '../links.js';
import { PROBLEM_TYPE, problemDocument } from '../plugins/problems.js';
import { FORMAT_QUERY } from '../plugins/validation.js';
import { describeWithTag, fileResponse, jsonResponse } from '../schemas/openapi.js';
import type { ClusterService, RouteGroup, Services } from '../services.js';

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Metrics of the node in the text format of Prometheus, version 0.0.4. */
async function prometheusMetrics(services: Services, dependencies: DependencyChecks): Promise<string> {
  const { storage, cluster, metrics, version } = services;
  const snapshot = new Snapshot();
  const { tiles, scenes, collections, models, writeError } = await storage.stats();
  snapshot.gauge('build_info', 'The version of the program; the value is always 1.', [
    { labels: { version }, value: 1 },
  ]);
  snapshot.gauge('tiles', 'Tiles in the index of this node.', tiles);
  snapshot.gauge('scenes', 'Scenes that this node knows.', scenes);
  snapshot.gauge('collections', 'Collections that this node knows.', collections);
  snapshot.gauge('models', 'Models that this node knows.', models);
  snapshot.gauge(
    'writes_stopped',
    '1 after a write error: the node refuses writes until it is restarted.',
    Number(writeError !== null),
  );
  await addDependencies(snapshot, services, dependencies);
  addJobs(snapshot, services);
  addSubscriptions(snapshot, services);
  if (cluster) await addCluster(snapshot, cluster, dependencies);
  addCache(snapshot, services);
  return (await snapshot.text()) + (await metrics.text());
}

async function addDependencies(
  snapshot: Snapshot,
  { storage }: Services,
  dependencies: DependencyChecks,
): Promise<void> {
  const states = Object.entries(await dependencies.states());
  snapshot.gauge(
    'dependency_up',
    '1 if the dependency works: the disk of the data folder, the object store or etcd.',
    states.map(([dependency, state]) => ({ labels: { dependency }, value: Number(state === 'ok') })),
  );
  // A disk that cannot be read shows as `dependency_up` 0.
  const disk = await storage.reserve.state().catch(() => undefined);
  if (!disk) return;
  snapshot.gauge('disk_free_bytes', 'Free bytes of the disk of the data folder.', disk.freeBytes);
  snapshot.gauge(
    'disk_reserve_bytes',
    'Bytes that writes must leave free on the disk of the data folder.',
    disk.reserveBytes,
  );
}

function addJobs(snapshot: Snapshot, { jobs, processes }: Services): void {
  const states = ['accepted', 'running'] as const;
  const { active } = jobs;
  const count = (process: string, state: string) =>
    active.filter((job) => job.process === process && job.status === state).length;
  snapshot.gauge(
    'jobs',
    'Unfinished jobs that this node leads, by process and state.',
    [...processes.keys()].flatMap((process) =>
      states.map((state) => ({ labels: { process, state }, value: count(process, state) })),
    ),
  );
  const queuedSince = active.filter(({ status }) => status === 'accepted').map(({ updated }) => updated);
  const oldest = Math.min(...queuedSince, Date.now());
  snapshot.gauge(
    'jobs_oldest_queued_seconds',
    'Seconds since the oldest waiting job of this node was queued; 0 if no job waits.',
    (Date.now() - oldest) / 1e3,
  );
}

/** Nodes that do not run the scheduler, and those without active subscriptions, have no such figure. */
function addSubscriptions(snapshot: Snapshot, { subscriptions }: Services): void {
  const { oldestSuccessAt } = subscriptions;
  if (oldestSuccessAt === undefined) return;
  snapshot.gauge(
    'subscription_oldest_success_seconds',
    'Of all active subscriptions the longest time since the last complete round, or since the creation, in seconds.',
    Math.max(0, Date.now() - oldestSuccessAt) / 1e3,
  );
}

async function addCluster(
  snapshot: Snapshot,
  { cluster, peers }: ClusterService,
  dependencies: DependencyChecks,
): Promise<void> {
  const { placement, replica, self, nodes, isReady } = cluster;
  const states: Record<string, number> = { initializing: 0, available: 0, leaving: 0 };
  for (const owners of placement.slots)
    for (const { node, state } of owners) if (node === self) states[state]!++;
  const bytes = (await replica.bytesBySlot()).reduce((sum, one) => sum + one, 0);
  const bounds = await dependencies.logBounds();
  snapshot.gauge(
    'ready',
    '1 if no write error has stopped writes and this node has loaded all slots that it must answer for, otherwise 0.',
    Number(isReady),
  );
  snapshot.gauge(
    'slots',
    'Slots that this node owns, by state.',
    Object.entries(states).map(([state, value]) => ({ labels: { state }, value })),
  );
  snapshot.gauge(
    'slot_bytes',
    'Bytes of all tiles in the slots of this node. The files of these tiles may be only in the object store.',
    bytes,
  );
  snapshot.gauge('commit_applied', 'Number of the last commit that this node has applied.', replica.applied);
  snapshot.gauge(
    'coordination_up',
    '1 if etcd answers and has all commits that this node has applied, otherwise 0.',
    Number(bounds !== undefined),
  );
  // The lag is unknown while etcd does not answer.
  if (bounds) {
    // The node may have applied commits after the bounds were read.
    const lag = Math.max(0, bounds.head - replica.applied);
    snapshot.gauge('replica_lag', 'Commits that this node has not applied yet.', lag);
    snapshot.gauge('log_entries', 'Commits since the last checkpoint.', bounds.head - bounds.checkpoint);
  }
  const failures = new Map([
    ...nodes.filter(({ id }) => id !== self).map(({ id }): [string, number] => [id, 0]),
    ...peers.failures,
  ]);
  snapshot.counter(
    'peer_errors_total',
    'Requests that another node did not answer, or answered with an error.',
    [...failures].map(([node, value]) => ({ labels: { node }, value })),
  );
  snapshot.gauge(
    'clock_offset_seconds',
    'Seconds by which the clock of another node is ahead of the clock of this node, at the last answer of that node.',
    [...peers.clockOffsets].map(([node, value]) => ({ labels: { node }, value })),
  );
  snapshot.gauge('placement_version', 'Version of the placement that this node uses.', placement.version);
  snapshot.gauge('members', 'Number of running nodes of the cluster.', nodes.length);
}

function addCache(snapshot: Snapshot, { storage }: Services): void {
  const cache = storage.cacheStats;
  if (!cache) return;
  const { bytes, limit, hits, misses, evicted } = cache;
  snapshot.gauge(
    'cache_bytes',
    'Bytes of all local copies of tile files that are also in the object store.',
    bytes,
  );
  snapshot.counter('cache_hits_total', 'Requests for tile files that had a local copy.', hits);
  snapshot.counter('cache_misses_total', 'Requests for tile files that had no local copy.', misses);
  snapshot.counter(
    'cache_evicted_total',
    'Tile versions whose local copies were removed to free space.',
    evicted,
  );
  if (limit !== undefined) snapshot.gauge('cache_limit_bytes', 'Maximum of tilewright_cache_bytes.', limit);
}

/** A service or device that a node needs to work: its disk, the object store, etcd. */
type Dependency = 'disk' | 'store' | 'etcd';
type DependencyStates = Partial<Record<Dependency, 'ok' | 'unavailable'>>;

/** How long one check may take, ms. */
const CHECK_TIMEOUT_MS = 1000;
/**
 * How long results are reused, ms: anybody may request `/ready`, and often also `/metrics`, and must not cause requests to the object
 * store and to etcd at will.
 */
const CHECK_REUSE_MS = 2000;

/** Exists in every object store of a cluster. */
const PROBED_OBJECT = 'cluster.json';

interface LogBounds {
  head: number;
  checkpoint: number;
}

async function readLogBounds({ cluster }: Pick<ClusterService, 'cluster'>): Promise<LogBounds | undefined> {
  // Callers report an etcd that does not answer as unavailable; the calls to etcd have their own error counter.
  const bounds = await cluster.log.bounds(CHECK_TIMEOUT_MS).catch(() => undefined);
  return bounds && bounds.head >= cluster.replica.applied ? bounds : undefined;
}

/** Checks the dependencies of a node at most once in `CHECK_REUSE_MS`. */
export class DependencyChecks {
  private last:
    | { begun: number; logBounds: Promise<LogBounds | undefined>; states: Promise<DependencyStates> }
    | undefined;

  constructor(private readonly services: Pick<Services, 'storage' | 'cluster'>) {}

  /** The state of each dependency that the node has. Does not reject. */
  states(): Promise<DependencyStates> {
    return this.recent().states;
  }

  /**
   * The positions of the log in etcd; undefined without a cluster, and if etcd does not answer in time or lacks commits that this node
   * has applied. Does not reject.
   */
  logBounds(): Promise<LogBounds | undefined> {
    return this.recent().logBounds;
  }

  private recent() {
    const begun = performance.now();
    if (!this.last || begun - this.last.begun >= CHECK_REUSE_MS) {
      const { cluster } = this.services;
      const logBounds = cluster ? readLogBounds(cluster) : Promise.resolve(undefined);
      this.last = { begun, logBounds, states: this.check(logBounds) };
    }
    return this.last;
  }

  private async check(logBounds: Promise<LogBounds | undefined>): Promise<DependencyStates> {
    const { cluster } = this.services;
    const checks: Partial<Record<Dependency, Promise<boolean>>> = {
      disk: this.isDiskWritable(),
      ...(cluster && { store: isAnswering(cluster.objects) }),
      ...(cluster?.hasEtcd && { etcd: logBounds.then((bounds) => bounds !== undefined) }),
    };
    const states = Object.entries(checks).map(async ([name, check]) => {
      const isOk = await check.catch(() => false);
      return [name, isOk ? 'ok' : 'unavailable'] as const;
    });
    return Object.fromEntries(await Promise.all(states));
  }

  /** False if a failed write has stopped all writes, or the disk has less free than the reserve. The cache of tile files can make room. */
  private async isDiskWritable(): Promise<boolean> {
    const { storage } = this.services;
    if (storage.catalogue.writeError !== undefined) return false;
    const { freeBytes, reserveBytes } = await storage.reserve.state();
    return freeBytes + (storage.cacheStats?.bytes ?? 0) >= reserveBytes;
  }
}

/** True if the object store answers in time. A hung file system ignores the signal. */
async function isAnswering(objects: ClusterService['objects']): Promise<boolean> {
  const signal = AbortSignal.timeout(CHECK_TIMEOUT_MS);
  return (await raceAbort(objects.head(PROBED_OBJECT, { signal }), signal)) !== undefined;
}

const describe = describeWithTag('operations');

export const operationRoutes: RouteGroup = async (server, { services }) => {
  const dependencies = new DependencyChecks(services);
  server.get(
    '/health',
    {
      // A supervisor of the process has no token.
      config: { open: true },
      ...describe('State of the node; with the right to read also its counts and its errors', {
        200: jsonResponse('Health', 'The node is up'),
      }),
    },
    async ({ mayRead }) => ({
      status: 'ok',
      ...(mayRead && {
        node: services.nodeId,
        version: services.version,
        ...(await services.storage.stats()),
      }),
    }),
  );

  server.get(
    '/ready',
    {
      config: { open: true },
      ...describe('Readiness of the node; in a cluster, its slots must be loaded', {
        200: jsonResponse('Ready', 'The node is ready'),
        503: jsonResponse('NotReady', 'The node is not ready', PROBLEM_TYPE),
      }),
    },
    async (request, reply) => {
      const checks = await dependencies.states();
      if (!services.cluster || services.cluster.cluster.isReady) return { status: 'ready', checks };
      const problem = problemDocument(notReady(), request.id, request.url);
      return reply
        .code(503)
        .type(PROBLEM_TYPE)
        .header('cache-control', 'no-store')
        .send({ ...problem, checks });
    },
  );

  server.get(
    '/metrics',
    describe('Metrics of the node for Prometheus', { 200: fileResponse('The figures', 'text/plain') }),
    async (_request, reply) => {
      reply.type(METRICS_TYPE);
      return prometheusMetrics(services, dependencies);
    },
  );

  server.get('/openapi.json', { schema: { hide: true, querystring: FORMAT_QUERY } }, async (request, reply) =>
    // A Buffer, because fastify would add a charset to text, and clients compare this type as it is written.
    reply
      .header('content-type', 'application/vnd.oai.openapi+json;version=3.0')
      .send(
        Buffer.from(
          JSON.stringify({ ...(await server.openApiDocument()), servers: [{ url: baseUrl(request) }] }),
        ),
      ),
  );
};
