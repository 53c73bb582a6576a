/** One training of all places with the command, and its cost. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ComparedRun } from '../../src/cli/compare/runs.js';
import { measureUsage, type Usage } from '../../src/cli/compare/usage.js';
import { processUsage } from '../../src/metrics/usage.js';
import type { TrainingMode, TrainResults } from '../../src/training/index.js';
import { ask, TOKEN } from '../cluster/servers.js';
import { endsWithUs } from '../support/peer-process.js';
import type { TrainingCluster } from './nodes.js';
import { COLLECTION } from './regions.js';

const COMMAND = fileURLToPath(new URL('../../command/main.js', import.meta.url));
/** The samples are read from outside of the nodes, which send nothing for them. */
const SAMPLE_INTERVAL_MS = 250;

export interface Asked {
  model: string;
  mode: TrainingMode;
  epochs: number;
  seed: number;
}

/** As the kernel counts at the interfaces of the nodes and of etcd, whose bytes count among all that are sent. */
export async function measured<T>(
  { nodes, network }: TrainingCluster,
  work: () => Promise<T>,
): Promise<{ result: T; usage: Usage }> {
  const read = async () =>
    nodes.map(({ child, spot }) => ({ id: spot.name, startedAt: '', ...processUsage(child.pid!) }));
  const sentByEtcd = async () =>
    Number(await readFile(`/sys/class/net/${network.bridge}/statistics/tx_bytes`, 'utf8'));
  const before = await sentByEtcd();
  const { result, usage } = await measureUsage(read, SAMPLE_INTERVAL_MS, work);
  return { result, usage: { ...usage, sentBytes: usage.sentBytes! + (await sentByEtcd()) - before } };
}

/** The command runs beside the first node, so that what it asks crosses no line. */
export async function train(cluster: TrainingCluster, asked: Asked): Promise<ComparedRun> {
  const node = cluster.nodes[0]!;
  const { model, mode, epochs, seed } = asked;
  const command = [...node.spot.wrapper, process.execPath, COMMAND, 'train', model, '--mode', mode];
  command.push('--epochs', `${epochs}`, '--seed', `${seed}`, '--collection', COLLECTION);
  // Removing cloud takes nearly the 1 GB that a contained place has by default.
  if (mode === 'contained') command.push('--place-memory', '2GB');
  // Beside a cell lie parts of its neighbours.
  command.push('--min-coverage', '99', '--server', node.url, '--token', TOKEN, '--format', 'json');
  const { result, usage } = await measured(cluster, async () => {
    const running = promisify(execFile)(command[0]!, command.slice(1), { maxBuffer: 1e8 });
    endsWithUs(running.child);
    return (await running).stdout;
  });
  const { job, ...results } = JSON.parse(result) as TrainResults & { job: string };
  const { created, finished } = await ask<{ created: string; finished: string }>(node, `/jobs/${job}`);
  return {
    ...{ mode, seed, job, usage, results, disturbedBy: [] },
    seconds: (Date.parse(finished) - Date.parse(created)) / 1e3,
  };
}
