/** `engine`: a training step of each engine that is here, beside PyTorch from PyPI, each on one thread, in alternation. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { selectEngine } from '../../src/engines/select.js';
import { type BenchOptions, type BenchResult, median, result } from '../support/bench.js';
import { NETS, type NetName } from './nets.js';
import { installTorch } from './torch.js';

const STEP = fileURLToPath(new URL('./step.js', import.meta.url));
const TORCH_STEP = fileURLToPath(new URL('../../../bench/engine/torch_step.py', import.meta.url));
const ONE_THREAD = { OMP_NUM_THREADS: '1', OMP_WAIT_POLICY: 'passive', MKL_NUM_THREADS: '1' };
/** Target: our time may be at most this multiple of PyTorch's. */
const MARKS: Record<string, Record<NetName, number>> = {
  'wasm-onednn': { ndvi: 1.2, unet: 1.2, spagan: 1.2 },
  wasm: { ndvi: 0.9, unet: 1.1, spagan: 1.6 },
};

interface Step {
  /** CPU time of a step. */
  milliseconds: number;
  version: string;
  /** Peak, MB. */
  rss: number;
}

export async function benchEngine({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const python = installTorch(log);
  const only = process.env.TILEWRIGHT_BENCH_ONLY?.split(',') ?? Object.keys(MARKS);
  const engines: string[] = [];
  for (const engine of only)
    await selectEngine({ engine }).then(
      () => engines.push(engine),
      (error: Error) => log(`not measured: ${error.message}`),
    );
  const [rounds, steps] = short ? [1, 2] : [5, 10];
  const results: BenchResult[] = [];
  for (const [net, { title }] of Object.entries(NETS)) {
    const ours = new Map(engines.map((engine) => [engine, [] as Step[]]));
    const theirs: Step[] = [];
    for (let round = 0; round < rounds; round++) {
      for (const [engine, taken] of ours) taken.push(run(process.execPath, [STEP, engine, net, `${steps}`]));
      if (python) theirs.push(run(python, [TORCH_STEP, net, `${steps}`]));
    }
    for (const [engine, taken] of ours)
      results.push(...compared(title, engine, MARKS[engine]![net as NetName], taken, theirs));
  }
  return results;
}

function compared(title: string, engine: string, mark: number, ours: Step[], theirs: Step[]): BenchResult[] {
  const [own, peer] = [ours, theirs].map((steps) => steps.map(({ milliseconds }) => milliseconds)) as [
    number[],
    number[],
  ];
  const name = `${title}, a step of ${engine} ${ours[0]!.version}`;
  const memory = result(
    `${name}: peak memory`,
    'MB',
    median(ours.map(({ rss }) => rss)),
    theirs.length > 0 ? { PyTorch: median(theirs.map(({ rss }) => rss)) } : {},
  );
  if (theirs.length === 0) return [result(name, 'CPU ms', median(own)), memory];
  const { middle, low, high } = meanRatio(own.map((ms, i) => ms / peer[i]!));
  return [
    result(name, 'CPU ms', median(own), { [`PyTorch ${theirs[0]!.version}`]: median(peer) }),
    result(`${name}: of PyTorch's, mean of ${own.length} rounds`, 'x', middle, {
      '95 % from': low,
      to: high,
      mark,
    }),
    memory,
  ];
}

/** Two-sided 97.5 % points of Student's t for 1, 2, ... degrees of freedom. */
const T = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

/** Geometric mean of ratios, and its 95 % interval if there are several. */
function meanRatio(ratios: number[]): { middle: number; low: number; high: number } {
  const logs = ratios.map(Math.log);
  const mean = logs.reduce((sum, value) => sum + value, 0) / logs.length;
  const variance = logs.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (logs.length - 1);
  const half = logs.length > 1 ? T[logs.length - 2]! * Math.sqrt(variance / logs.length) : 0;
  return { middle: Math.exp(mean), low: Math.exp(mean - half), high: Math.exp(mean + half) };
}

function run(program: string, args: string[]): Step {
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    env: { ...process.env, ...ONE_THREAD },
  });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${stderr}`);
  return JSON.parse(stdout) as Step;
}
