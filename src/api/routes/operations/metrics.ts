/** Figures of the node in the text format of Prometheus, version 0.0.4. */
import type { Histogram } from '../../../metrics/index.js';
import type { ClusterService, Services } from '../../services.js';

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** How long etcd may take to tell how far the log goes, ms. */
const LOG_TIMEOUT_MS = 1000;

interface Metric {
  name: string;
  help: string;
  type: 'gauge' | 'counter' | 'histogram';
  /** One value, or one for each value of a label, or counts in classes. */
  value: number | { label: string; values: Record<string, number> } | Histogram;
}

const gauge = (name: string, help: string, value: Metric['value']): Metric => ({
  name: `tilewright_${name}`,
  help,
  type: 'gauge',
  value,
});

export async function prometheusMetrics({ storage, cluster }: Services): Promise<string> {
  const { tiles, scenes, collections, models, writeError } = await storage.stats();
  const { user, system } = process.cpuUsage();
  const metrics: Metric[] = [
    gauge('tiles', 'Tiles in the index of this node.', tiles),
    gauge('scenes', 'Scenes that this node knows.', scenes),
    gauge('collections', 'Collections that this node knows.', collections),
    gauge('models', 'Models that this node knows.', models),
    gauge(
      'writes_stopped',
      '1 where a failed write has stopped all others, until the node is started again.',
      Number(writeError !== null),
    ),
    {
      name: 'process_cpu_seconds_total',
      help: 'CPU time of the process.',
      type: 'counter',
      value: (user + system) / 1e6,
    },
    {
      name: 'process_resident_memory_bytes',
      help: 'Memory of the process.',
      type: 'gauge',
      value: process.memoryUsage.rss(),
    },
    ...(cluster ? await clusterMetrics(cluster) : []),
  ];
  const cache = storage.cacheStats;
  if (cache) {
    const counter = (name: string, help: string, value: number): Metric => ({
      name: `tilewright_cache_${name}_total`,
      help,
      type: 'counter',
      value,
    });
    metrics.push(
      gauge('cache_bytes', 'Bytes of local tile files that are in the shared store as well.', cache.bytes),
      counter('hits', 'Tile files that were wanted and were here.', cache.hits),
      counter('misses', 'Tile files that were wanted and had to be fetched from the store.', cache.misses),
      counter('evicted', 'Versions of tiles whose files were removed to make room.', cache.evicted),
    );
    if (cache.limit !== undefined)
      metrics.push(gauge('cache_limit_bytes', 'The most bytes that these files may take.', cache.limit));
  }
  return `${metrics.map(textOf).join('\n')}\n`;
}

async function clusterMetrics({ cluster, peers }: ClusterService): Promise<Metric[]> {
  const { placement, replica, self, nodes, isReady, commitSeconds } = cluster;
  const states: Record<string, number> = { initializing: 0, available: 0, leaving: 0 };
  for (const owners of placement.slots)
    for (const { node, state } of owners) if (node === self) states[state]!++;
  const bytes = replica.bytesBySlot().reduce((sum, one) => sum + one, 0);
  // A failure shows as `coordination_up` 0; the other metrics do not need etcd.
  const extent = await cluster.log.bounds(LOG_TIMEOUT_MS).catch(() => undefined);
  // An etcd without the commits that this node has applied is another one, or has lost them.
  const log = extent && extent.head >= replica.applied ? extent : undefined;
  return [
    gauge('ready', '1 where all slots that this node answers for are loaded.', Number(isReady)),
    gauge('slots', 'Slots that this node owns, by state.', { label: 'state', values: states }),
    gauge(
      'slot_bytes',
      'Bytes of the tiles in the slots of this node; their files may be in the shared store alone.',
      bytes,
    ),
    gauge('commit_applied', 'Number of the last commit that this node has applied.', replica.applied),
    gauge(
      'coordination_up',
      '1 where etcd answers, and has the commits that this node has applied.',
      Number(log !== undefined),
    ),
    // Nobody knows them while etcd is away.
    ...(log
      ? [
          gauge('replica_lag', 'Commits that this node has not applied yet.', log.head - replica.applied),
          gauge('log_entries', 'Commits since the last checkpoint.', log.head - log.checkpoint),
        ]
      : []),
    {
      name: 'tilewright_commit_seconds',
      help: 'Commits of this node, from the records to the acknowledgement.',
      type: 'histogram',
      value: commitSeconds,
    },
    {
      name: 'tilewright_peer_errors_total',
      help: 'Questions that another node has not answered well.',
      type: 'counter',
      value: {
        label: 'node',
        values: Object.fromEntries([
          ...nodes.filter(({ id }) => id !== self).map(({ id }): [string, number] => [id, 0]),
          ...peers.failures,
        ]),
      },
    },
    gauge('placement_version', 'Version of the placement that this node knows.', placement.version),
    gauge('members', 'Nodes of the cluster that run.', nodes.length),
  ];
}

function textOf({ name, help, type, value }: Metric): string {
  const head = `# HELP ${name} ${help}\n# TYPE ${name} ${type}`;
  return [head, ...samplesOf(name, value)].join('\n');
}

function samplesOf(name: string, value: Metric['value']): string[] {
  if (typeof value === 'number') return [`${name} ${value}`];
  if ('label' in value)
    return Object.entries(value.values).map(
      ([label, one]) => `${name}{${value.label}=${quoted(label)}} ${one}`,
    );
  const { bounds, cumulative, sum } = value;
  const classes = [...bounds.map(String), '+Inf'].map(
    (bound, i) => `${name}_bucket{le="${bound}"} ${cumulative[i]}`,
  );
  return [...classes, `${name}_sum ${sum}`, `${name}_count ${cumulative.at(-1)}`];
}

/** A label's value, as the format wants it. */
const quoted = (text: string) =>
  `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`;
