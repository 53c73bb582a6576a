/**
 * `start-up`: CPU time of short commands, which mostly load their code: the bundle, beside the same command from its single modules and
 * Node alone. Times: less is better.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeSentinelLikeSeries } from '../../data-samples/index.js';
import { type BenchOptions, type BenchResult, cpuSecondsOf, median, result } from '../support/bench.js';

const BUNDLE = fileURLToPath(new URL('../../command/main.js', import.meta.url));
const MODULES = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url));

export async function benchStartUp({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const rounds = short ? 2 : 20;
  // The first run would fill the compile cache, and Node 20 has none.
  process.env.NODE_DISABLE_COMPILE_CACHE = '1';
  const folder = await mkdtemp(join(tmpdir(), 'tilewright-bench-'));
  try {
    const data = join(folder, 'data');
    log('ingest of a scene ...');
    const [scene] = await writeSentinelLikeSeries(join(folder, 'scenes'));
    const flags = ['--collection', 'sample', '--mask-band', '5', '--data', data];
    cpuSecondsOf(process.execPath, [BUNDLE, 'ingest', scene!.path, ...flags]);
    const commands = { '--help': ['--help'], search: ['search', '--data', data] };
    return Object.entries(commands).map(([name, args]) => {
      log(`${name} ...`);
      const runs = Array.from({ length: rounds }, () => ({
        bundle: cpuSecondsOf(process.execPath, [BUNDLE, ...args]),
        modules: cpuSecondsOf(process.execPath, [MODULES, ...args]),
        node: cpuSecondsOf(process.execPath, ['-e', '0']),
      }));
      const medianOf = (what: 'bundle' | 'modules' | 'node') => 1000 * median(runs.map((run) => run[what]));
      const peers = { modules: medianOf('modules'), node: medianOf('node') };
      return result(`start-up of ${name}`, 'CPU ms', medianOf('bundle'), peers);
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
