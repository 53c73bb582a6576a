/** Figures of the node in the text format of Prometheus, version 0.0.4. */
import type { Services } from '../services.js';

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

interface Metric {
  name: string;
  help: string;
  type: 'gauge' | 'counter';
  /** One value, or one for each value of a label. */
  value: number | { label: string; values: Record<string, number> };
}

export async function metricsOf({ storage, cluster: service }: Services): Promise<string> {
  const { tiles, scenes, collections, models } = await storage.stats();
  const gauge = (name: string, help: string, value: Metric['value']): Metric => ({
    name: `tilewright_${name}`,
    help,
    type: 'gauge',
    value,
  });
  const { user, system } = process.cpuUsage();
  const metrics: Metric[] = [
    gauge('tiles', 'Tiles in the index of this node.', tiles),
    gauge('scenes', 'Scenes that this node knows.', scenes),
    gauge('collections', 'Collections that this node knows.', collections),
    gauge('models', 'Models that this node knows.', models),
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
  ];
  const cache = storage.cacheFigures;
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
  if (service) {
    const { cluster } = service;
    const states: Record<string, number> = { initializing: 0, available: 0, leaving: 0 };
    for (const owners of cluster.placement.slots)
      for (const { node, state } of owners) if (node === cluster.self) states[state]!++;
    metrics.push(
      gauge('ready', '1 where all slots that this node answers for are loaded.', Number(cluster.isReady)),
      gauge('slots', 'Slots that this node owns, by state.', { label: 'state', values: states }),
      gauge(
        'commit_applied',
        'Number of the last commit that this node has applied.',
        cluster.replica.applied,
      ),
      gauge('placement_version', 'Version of the placement that this node knows.', cluster.placement.version),
      gauge('members', 'Nodes of the cluster that run.', cluster.nodes.length),
    );
  }
  return `${metrics.map(textOf).join('\n')}\n`;
}

function textOf({ name, help, type, value }: Metric): string {
  const head = `# HELP ${name} ${help}\n# TYPE ${name} ${type}`;
  if (typeof value === 'number') return `${head}\n${name} ${value}`;
  const lines = Object.entries(value.values).map(
    ([label, one]) => `${name}{${value.label}="${label}"} ${one}`,
  );
  return [head, ...lines].join('\n');
}
