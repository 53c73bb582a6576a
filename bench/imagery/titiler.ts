/** titiler as a peer: installed into a folder of its own, and run for the time of a benchmark. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { endsWithUs, freePort, until } from '../support/peer-process.js';
import { BENCH_FOLDER } from '../support/scene.js';

const FOLDER = join(BENCH_FOLDER, 'titiler');

export interface Titiler {
  url: string;
  version: string;
  stop(): void;
}

/** Undefined if it cannot be installed or does not start; logs the reason. */
export async function startTitiler(log: (line: string) => void): Promise<Titiler | undefined> {
  const python = join(FOLDER, 'bin', 'python');
  if (!existsSync(join(FOLDER, 'bin', 'uvicorn'))) {
    log('installing titiler.application and uvicorn from PyPI');
    const made = spawnSync('python3', ['-m', 'venv', FOLDER]);
    const install = ['-m', 'pip', 'install', '-q', 'titiler.application', 'uvicorn'];
    const installed = made.status === 0 ? spawnSync(python, install, { encoding: 'utf8' }) : made;
    if (installed.status !== 0) {
      log(`no titiler beside ours: ${String(installed.stderr).trim().split('\n').at(-1)}`);
      return undefined;
    }
  }
  const port = await freePort();
  const args = [
    '-m',
    'uvicorn',
    'titiler.application.main:app',
    '--port',
    String(port),
    '--log-level',
    'error',
  ];
  const env = { ...process.env, GDAL_CACHEMAX: '200', GDAL_DISABLE_READDIR_ON_OPEN: 'EMPTY_DIR' };
  const child = endsWithUs(spawn(python, args, { stdio: 'ignore', env }));
  const url = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  if (!(await until(answers, child))) {
    child.kill();
    log('no titiler beside ours: it does not start');
    return undefined;
  }
  const { stdout } = spawnSync(python, ['-c', 'import titiler.core as t; print(t.__version__)'], {
    encoding: 'utf8',
  });
  return { url, version: stdout.trim(), stop: () => child.kill() };
}
