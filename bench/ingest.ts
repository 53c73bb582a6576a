/** `ingest`: first the steps of it over one band, then a whole scene by the real command. */
import type { BenchOptions, BenchResult } from './bench.js';
import { benchSteps } from './raster.js';
import { benchWholeScene } from './whole-scene.js';

export async function benchIngest(options: BenchOptions): Promise<BenchResult[]> {
  return [...(await benchSteps(options)), ...(await benchWholeScene(options))];
}
