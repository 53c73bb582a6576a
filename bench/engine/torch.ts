/** PyTorch from PyPI, as a peer. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { BENCH_FOLDER } from '../scene.js';

const FOLDER = join(BENCH_FOLDER, 'torch');

/** The Python that has PyTorch; undefined where it cannot be installed. */
export function installTorch(log: (line: string) => void): string | undefined {
  const python = join(FOLDER, 'bin', 'python');
  const works = () => existsSync(python) && spawnSync(python, ['-c', 'import torch']).status === 0;
  if (works()) return python;
  log('installing PyTorch from PyPI: some gigabytes');
  const made = spawnSync('python3', ['-m', 'venv', FOLDER], { encoding: 'utf8' });
  const installed =
    made.status === 0
      ? spawnSync(python, ['-m', 'pip', 'install', '-q', 'torch', 'numpy'], { encoding: 'utf8' })
      : made;
  if (installed.status === 0 && works()) return python;
  log(`no PyTorch beside ours: ${String(installed.stderr).trim().split('\n').at(-1)}`);
  return undefined;
}
