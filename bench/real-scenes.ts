/** Real products into tiles by the real command, beside the best that GDAL does. They are small: starting is a good part of it. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describeScenes } from '../src/ingest/formats/index.js';
import { type BenchOptions, type BenchResult, median, result } from './bench.js';
import { gdalRows, ingest, megapixels } from './whole-scene.js';

const DATA = fileURLToPath(new URL('../../../shared/data/', import.meta.url));
/** Folders with one scene each; one does not say when it was taken. */
const SCENES: { name: string; datetime?: string }[] = [
  { name: 'sentinel2-l1c-clear', datetime: '2017-11-08T15:58:00Z' },
  { name: 'landsat8-cloudy' },
  { name: 'landsat8-c2l2-qa' },
];

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
    const ours: number[] = [];
    const rows: number[] = [];
    for (let round = 0; round < (short ? 1 : 3); round++) {
      const { cost, tiles } = await ingest(path, flags);
      ours.push(megapixels(tiles) / cost.cpuSeconds);
      rows.push(megapixels(tiles) / (await gdalRows(scene, tiles)).cpuSeconds);
    }
    results.push(result(name, 'Mpx/CPU s', median(ours), { 'gdalwarp a row of cells': median(rows) }));
  }
  return results;
}
