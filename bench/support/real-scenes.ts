/**
 * Real products into tiles, beside the best that GDAL does. They are small: by a command for each scene starting is most of it, so
 * they are also ingested by a node that runs already, and by one process of GDAL that does them again and again.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inProcessTransport } from '../../src/cli/connection.js';
import { Client } from '../../src/client/index.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { openNode } from '../../src/node.js';
import { gdalRows, ingest, megapixels } from '../ingest/whole-scene.js';
import { type BenchOptions, type BenchResult, median, result, spend } from './bench.js';

const DATA = fileURLToPath(new URL('../../../../shared/data/', import.meta.url));
/** Folders with one scene each; one does not say when it was taken. */
const SCENES: { name: string; datetime?: string }[] = [
  { name: 'sentinel2-l1c-clear', datetime: '2017-11-08T15:58:00Z' },
  { name: 'landsat8-cloudy' },
  { name: 'landsat8-c2l2-qa' },
];
/** Ingests of a scene by a running node before they are measured, and measured ones. */
const WARM_UP_RUNS = 5;
const MEASURED_RUNS = 15;
/** Repetitions of a scene in a process of GDAL. */
const REPEATS = 10;

export async function benchRealScenes({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const results: BenchResult[] = [];
  for (const { name, ...options } of SCENES) {
    const path = `${DATA}${name}`;
    if (!existsSync(path)) {
      log(`${path} is missing: no figures of it`);
      continue;
    }
    const [scene] = await describeScenes(path, options);
    const flags = options.datetime === undefined ? [] : ['--datetime', options.datetime];
    const of: Record<'ours' | 'rows' | 'running' | 'runningRows', number[]> = {
      ours: [],
      rows: [],
      running: [],
      runningRows: [],
    };
    for (let round = 0; round < (short ? 1 : 3); round++) {
      const { cost, tiles } = await ingest(path, flags);
      const mpx = megapixels(tiles);
      of.ours.push(mpx / cost.cpuSeconds);
      of.running.push(mpx / (await ingestAgain(path, options)));
      const once = (await gdalRows(scene, tiles)).cpuSeconds;
      const often = (await gdalRows(scene, tiles, 1 + REPEATS)).cpuSeconds;
      of.rows.push(mpx / once);
      of.runningRows.push((mpx * REPEATS) / (often - once));
    }
    results.push(
      result(`${name}, a command`, 'Mpx/CPU s', median(of.ours), {
        'gdalwarp a row of cells': median(of.rows),
      }),
      result(`${name}, running`, 'Mpx/CPU s', median(of.running), {
        'gdalwarp a row of cells': median(of.runningRows),
      }),
    );
  }
  return results;
}

/** CPU seconds of a scene into a new collection, the median of several by one node. */
async function ingestAgain(path: string, options: { datetime?: string }): Promise<number> {
  const data = mkdtempSync(join(tmpdir(), 'tilewright-bench-'));
  const node = await openNode({ data, memory: 1e9, cores: 2, reserve: 0 });
  const client = new Client(inProcessTransport(node));
  try {
    const seconds: number[] = [];
    for (let i = 0; i < WARM_UP_RUNS + MEASURED_RUNS; i++) {
      const inputs = { paths: [path], collection: `again-${i}`, ...options };
      const { cpuSeconds } = await spend(() => client.run('ingest', inputs));
      if (i >= WARM_UP_RUNS) seconds.push(cpuSeconds);
    }
    return median(seconds);
  } finally {
    await node.close();
    rmSync(data, { recursive: true });
  }
}
