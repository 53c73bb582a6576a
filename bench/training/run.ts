/** One training of all places, by the command, and what it took. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { TrainResults } from '../../src/training/index.js';
import type { TrainingMode } from '../../src/training/inputs.js';
import { ask, TOKEN } from '../cluster/servers.js';
import { treeCpuSeconds } from '../measure-tree.js';
import { endsWithUs } from '../peer-process.js';
import type { TrainingCluster } from './nodes.js';
import { COLLECTION } from './regions.js';
import { between, counters, type Traffic } from './traffic.js';

const COMMAND = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));
/** Between two looks at the CPU time of the nodes, ms. */
const LOOK = 250;

export interface Asked {
  model: string;
  mode: TrainingMode;
  epochs: number;
  seed: number;
}

export interface Run {
  asked: Asked;
  /** From the job's start to its end. */
  seconds: number;
  results: TrainResults;
  traffic: Traffic;
  /** Of all nodes with their processes, CPU seconds. */
  cpu: number;
  /** Cores in use, the mean of the nodes, in each span of a quarter of a second. */
  use: number[];
}

/** The command runs beside the first node, so that what it asks crosses no line. */
export async function train(cluster: TrainingCluster, asked: Asked): Promise<Run> {
  const { nodes } = cluster;
  const node = nodes[0]!;
  const pids = nodes.map(({ child }) => child.pid!);
  const before = await counters(cluster);
  const started = treeCpuSeconds(pids);
  const looks = [{ at: performance.now(), cpu: started }];
  const looking = setInterval(() => looks.push({ at: performance.now(), cpu: treeCpuSeconds(pids) }), LOOK);
  const { model, mode, epochs, seed } = asked;
  const command = [...node.spot.wrapper, process.execPath, COMMAND, 'train', model, '--mode', mode];
  command.push('--epochs', `${epochs}`, '--seed', `${seed}`, '--collection', COLLECTION);
  // Removing cloud takes nearly the 1 GB that a contained place has by default.
  if (mode === 'contained') command.push('--place-memory', '2GB');
  // Beside a cell lie parts of its neighbours.
  command.push('--min-coverage', '99', '--server', node.url, '--token', TOKEN, '--format', 'json');
  try {
    const running = promisify(execFile)(command[0]!, command.slice(1), { maxBuffer: 1e8 });
    endsWithUs(running.child);
    const { stdout } = await running;
    clearInterval(looking);
    const cpu = treeCpuSeconds(pids) - started;
    const traffic = between(before, await counters(cluster));
    const { job, ...results } = JSON.parse(stdout) as TrainResults & { job: string };
    const { created, finished } = await ask<{ created: string; finished: string }>(node, `/jobs/${job}`);
    return {
      ...{ asked, results, traffic, cpu },
      seconds: (Date.parse(finished) - Date.parse(created)) / 1e3,
      use: looks
        .slice(1)
        .map(({ at, cpu }, i) => (1e3 * (cpu - looks[i]!.cpu)) / (at - looks[i]!.at) / nodes.length),
    };
  } finally {
    clearInterval(looking);
  }
}
