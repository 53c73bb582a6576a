/** Windows of stored tile files. Blocks are decoded in worker threads, and kept with the structure of their files. */

import type { WorkerPool } from '../../async/index.js';
import { allocatePixels, type PixelArray, type Window } from '../../raster/index.js';
import type { ImageryResult, ImageryTask, TileStructure } from '../imagery-tasks.js';
import { BlockCache } from './block-cache.js';

/** About what the structure of a file takes in memory. */
const STRUCTURE_BYTES = 500;

/** File versions are never overwritten, so what was read of a path stays true. */
export class TileReader {
  private readonly structures: BlockCache<TileStructure>;
  private readonly blocks: BlockCache<PixelArray>;

  /** `cacheBytes`: the most that decoded blocks may take in memory. */
  constructor(
    private readonly pool: WorkerPool<ImageryTask, ImageryResult>,
    cacheBytes: number,
  ) {
    this.structures = new BlockCache(cacheBytes / 64, () => STRUCTURE_BYTES);
    this.blocks = new BlockCache(cacheBytes, (pixels) => pixels.buffer.byteLength);
  }

  /** The type of a file's pixels, and its image and overviews, the largest first. Throws TW_IMAGERY_TILE_FILE. */
  structure(path: string): Promise<TileStructure> {
    return this.structures.get(path, async () => {
      const result = await this.pool.run({ kind: 'structure', path });
      return (result as Extract<ImageryResult, { kind: 'structure' }>).structure;
    });
  }

  /**
   * Stored values of a window of one band (from 0) of one level; as floating point with NaN where the file's mask says that
   * there is no data. Throws TW_IMAGERY_TILE_FILE.
   */
  async window(path: string, band: number, level: number, window: Window): Promise<PixelArray> {
    const { masked } = await this.structure(path);
    if (!masked) return this.plainWindow(path, band, level, window);
    const [pixels, mask] = await Promise.all([
      this.plainWindow(path, band, level, window),
      this.plainWindow(path, 'mask', level, window),
    ]);
    const out = Float64Array.from(pixels);
    for (let i = 0; i < out.length; i++) if (mask[i] === 0) out[i] = NaN;
    return out;
  }

  private async plainWindow(
    path: string,
    band: number | 'mask',
    level: number,
    window: Window,
  ): Promise<PixelArray> {
    const { dataType, levels } = await this.structure(path);
    const { width, blockWidth, blockHeight } = levels[level];
    const across = Math.ceil(width / blockWidth);
    const right = window.column + window.width;
    const bottom = window.row + window.height;
    const out = allocatePixels(band === 'mask' ? 'uint8' : dataType, window.width * window.height);
    const copies: Promise<void>[] = [];
    for (let top = window.row - (window.row % blockHeight); top < bottom; top += blockHeight) {
      for (let left = window.column - (window.column % blockWidth); left < right; left += blockWidth) {
        const block = (top / blockHeight) * across + left / blockWidth;
        const copy = (pixels: PixelArray) =>
          copyBlock(pixels, { column: left, row: top, width: blockWidth, height: blockHeight }, out, window);
        copies.push(this.block(path, band, level, block).then(copy));
      }
    }
    await Promise.all(copies);
    return out;
  }

  private block(path: string, band: number | 'mask', level: number, block: number): Promise<PixelArray> {
    return this.blocks.get(`${path} ${level} ${band} ${block}`, async () => {
      const result = await this.pool.run({ kind: 'block', path, level, band, block });
      return (result as Extract<ImageryResult, { kind: 'block' }>).pixels;
    });
  }
}

/** Copies what a block and a window share. */
function copyBlock(pixels: PixelArray, block: Window, out: PixelArray, window: Window): void {
  const left = Math.max(block.column, window.column);
  const right = Math.min(block.column + block.width, window.column + window.width);
  const top = Math.max(block.row, window.row);
  const bottom = Math.min(block.row + block.height, window.row + window.height);
  for (let row = top; row < bottom; row++) {
    const from = (row - block.row) * block.width + left - block.column;
    const to = (row - window.row) * window.width + left - window.column;
    out.set(pixels.subarray(from, from + right - left), to);
  }
}
