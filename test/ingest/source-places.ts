/** Source positions of the pixels of a tile, by GDAL as a second implementation. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gridByName } from '../../src/grid/index.js';
import type { TileRecord } from '../../src/storage/index.js';
import { gdalWarp } from '../support/gdal.js';
import { type RasterOptions, writeRaster } from '../support/rasters.js';

/** The grid of a source: its upper left corner and its square pixels. */
export type SourceGrid = Required<Pick<RasterOptions, 'x' | 'y' | 'pixel' | 'width' | 'height' | 'epsg'>>;

/** For each pixel of a tile, the pixel of the source that it shows (row * width + column); -1 beside the source. */
export async function sourcePlaces(tile: TileRecord, group: string, grid: SourceGrid): Promise<Int32Array> {
  const folder = await mkdtemp(join(tmpdir(), 'tilewright-test-'));
  try {
    const scene = await writeRaster(join(folder, 'places.tif'), { ...grid, nodata: 0 });
    const { width, height } = tile.groups.find(({ name }) => name === group)!;
    const bounds = gridByName(tile.grid).bounds(tile.geocode);
    const { bands } = await gdalWarp(scene, { bounds, width: width!, height: height!, resampling: 'near' });
    return Int32Array.from(bands[0]!, (place) => place - 1);
  } finally {
    await rm(folder, { recursive: true });
  }
}
