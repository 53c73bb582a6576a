/** `ingest`: first the steps of an ingest of one band, then synthetic and real scenes with the real command. */
import { spawnSync } from 'node:child_process';
import { type BenchOptions, type BenchResult, isInstalled } from '../support/bench.js';
import { benchRealScenes } from '../support/real-scenes.js';
import { benchSteps } from './raster.js';
import { benchWholeScene, PYTHON } from './whole-scene.js';

export async function benchIngest(options: BenchOptions): Promise<BenchResult[]> {
  const steps = await benchSteps(options);
  if (!isInstalled('gdalwarp') || spawnSync(PYTHON, ['-c', 'import osgeo.gdal']).status !== 0) {
    options.log('GDAL or python3-gdal is not installed: no whole scenes, whose best peer needs them');
    return steps;
  }
  return [...steps, ...(await benchRealScenes(options)), ...(await benchWholeScene(options))];
}
