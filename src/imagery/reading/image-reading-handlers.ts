/** Tasks of worker threads that read tile files. */
import type { DataType, PixelArray } from '../../raster/index.js';
import { withOpenTile } from './open-tile-for-reading.js';
import { type Level, readBlock, readMaskBlock } from './read-tile-geotiff.js';

export interface TileStructure {
  dataType: DataType;
  /** The full image and its overviews, the largest first. */
  levels: Level[];
  /** True if a mask defines which pixels have data. */
  masked: boolean;
}

/** A block of a band or of the mask of a level. */
export interface BlockTask {
  path: string;
  level: number;
  band: number | 'mask';
  block: number;
}

export const READ_HANDLERS = {
  structure: ({ path }: { path: string }): TileStructure =>
    withOpenTile(path, (_, { dataType, levels, masks }) => ({
      dataType,
      masked: masks.length > 0,
      levels: levels.map(({ width, height, blockWidth, blockHeight }) => ({
        width,
        height,
        blockWidth,
        blockHeight,
      })),
    })),
  block: ({ path, level, band, block }: BlockTask): PixelArray =>
    withOpenTile(path, (file, cog) => {
      const rows = cog.levels[level].blockHeight;
      if (band === 'mask') return readMaskBlock(file, cog, { level, block }, rows);
      // The thread reads its next block into the same memory.
      return readBlock(file, cog, { level, band, block }, rows).slice();
    }),
};

export type ReadHandlers = typeof READ_HANDLERS;
