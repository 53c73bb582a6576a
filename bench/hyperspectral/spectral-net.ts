/**
 * `spectral-net`: a training step (gradient and Adam) of `cnn1d` on 64 spectra of 218 bands, compared with PyTorch from PyPI. Both use one
 * thread and run in alternation.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { selectEngine } from '../../src/engines/index.js';
import { installTorch } from '../engine/torch.js';
import { type BenchOptions, type BenchResult, median, result } from '../support/bench.js';

const STEP = fileURLToPath(new URL('./spectral-net-step.js', import.meta.url));
const PEER = fileURLToPath(new URL('../../../bench/hyperspectral/spectral_net.py', import.meta.url));
const ONE_THREAD = { OMP_NUM_THREADS: '1', OMP_WAIT_POLICY: 'passive', MKL_NUM_THREADS: '1' };

export async function benchSpectralNet({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const python = installTorch(log);
  const { name, version } = await selectEngine();
  const [rounds, steps] = short ? [1, 5] : [5, 60];
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    ours.push(run(process.execPath, [STEP, name, `${steps}`]));
    if (python) theirs.push(run(python, [PEER, `${steps}`]));
  }
  const peers: Record<string, number> = python ? { PyTorch: median(theirs) } : {};
  return [result(`a step of cnn1d by ${name} ${version}, less is better`, 'CPU ms', median(ours), peers)];
}

/** Median CPU time of a step, ms. */
function run(program: string, args: string[]): number {
  const env = { ...process.env, ...ONE_THREAD };
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', env });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${stderr}`);
  return Number(stdout);
}
