/** Packages from PyPI, as peers: each set in a folder of its own. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { BENCH_FOLDER } from './scene.js';

/** The Python that has the packages; undefined if they cannot be installed; the log has the reason. `module` is the imported module. */
export function installPython(
  name: string,
  packages: string[],
  module: string,
  log: (line: string) => void,
): string | undefined {
  const folder = join(BENCH_FOLDER, name);
  const python = join(folder, 'bin', 'python');
  const works = () => existsSync(python) && spawnSync(python, ['-c', `import ${module}`]).status === 0;
  if (works()) return python;
  log(`installing ${packages.join(', ')} from PyPI`);
  const made = spawnSync('python3', ['-m', 'venv', folder], { encoding: 'utf8' });
  const installed =
    made.status === 0
      ? spawnSync(python, ['-m', 'pip', 'install', '-q', ...packages], { encoding: 'utf8' })
      : made;
  if (installed.status === 0 && works()) return python;
  log(`no ${module} beside ours: ${String(installed.stderr).trim().split('\n').at(-1)}`);
  return undefined;
}
