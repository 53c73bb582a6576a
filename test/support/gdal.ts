/** GDAL as a second implementation. Tests that need it are skipped if it is not installed. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { GridBounds } from '../../src/grid/index.js';
import { type PixelArray, readRaster } from '../../src/raster/index.js';

export const hasGdal = (() => {
  try {
    execFileSync('gdalwarp', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

/** The pixels of a scene in a geohash cell by `gdalwarp -et 0`. */
export async function gdalWarp(
  scene: string,
  cell: { bounds: GridBounds; width: number; height: number; resampling: 'near' | 'bilinear' },
): Promise<{ bands: PixelArray[] }> {
  const folder = await mkdtemp(join(tmpdir(), 'tilewright-gdal-'));
  try {
    const { bounds: b, width, height, resampling } = cell;
    const out = join(folder, 'out.tif');
    const window = ['-te', b.west, b.south, b.east, b.north, '-ts', width, height].map(String);
    execFileSync('gdalwarp', [
      '-q',
      '-t_srs',
      'EPSG:4326',
      ...window,
      '-et',
      '0',
      '-r',
      resampling,
      scene,
      out,
    ]);
    return await readRaster(out);
  } finally {
    await rm(folder, { recursive: true });
  }
}
