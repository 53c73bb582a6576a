/** Reads windows of images of tile files. Worker threads decode blocks, which are cached with the structure of their images. */
import type { TaskPool } from '../async/index.js';
import { allocatePixels, type ImageFile, imageKey, type PixelArray, type Window } from '../raster/index.js';
import type { BlockTask, ReadHandlers, TileStructure } from './tile-geotiff.js';

/**
 * A cache of values with a limit in bytes. The least recently used value is dropped first.
 *
 * Invariants: `used` is the sum of the sizes of all complete values in `kept`, and at most `limit`; concurrent requests of a key share one
 * computation; a computation that failed is not kept.
 */
export class BlockCache<T> {
  private readonly kept = new Map<string, { value: Promise<T>; bytes: number }>();
  private used = 0;

  constructor(
    private readonly limit: number,
    private readonly sizeOf: (value: T) => number,
  ) {}

  get(key: string, make: () => Promise<T>): Promise<T> {
    const known = this.kept.get(key);
    if (known) {
      // A Map keeps the order of insertion, so the last key is the most recently used.
      this.kept.delete(key);
      this.kept.set(key, known);
      return known.value;
    }
    const entry = { value: make(), bytes: 0 };
    this.kept.set(key, entry);
    entry.value.then(
      (value) => {
        // The entry may have been dropped or replaced in the meantime.
        if (this.kept.get(key) !== entry) return;
        entry.bytes = this.sizeOf(value);
        this.used += entry.bytes;
        for (const [old, { bytes }] of this.kept) {
          if (this.used <= this.limit) break;
          this.kept.delete(old);
          this.used -= bytes;
        }
      },
      () => {
        if (this.kept.get(key) === entry) this.kept.delete(key);
      },
    );
    return entry.value;
  }
}

/** A band of an image, from 0. */
type BandImage = ImageFile & { band: number };

/** Approximate memory of the structure of an image. */
const STRUCTURE_BYTES = 500;

/** Invariant: cached structures and blocks stay valid, because file versions are never overwritten. */
export class TileReader {
  private readonly structures: BlockCache<TileStructure>;
  private readonly blocks: BlockCache<PixelArray>;

  /** `cacheBytes`: memory limit for decoded blocks. */
  constructor(
    private readonly pool: TaskPool<ReadHandlers>,
    cacheBytes: number,
  ) {
    this.structures = new BlockCache(cacheBytes / 64, () => STRUCTURE_BYTES);
    this.blocks = new BlockCache(cacheBytes, (pixels) => pixels.buffer.byteLength);
  }

  /** Throws TW_IMAGERY_TILE_FILE. */
  structure({ path, start, bytes }: ImageFile): Promise<TileStructure> {
    const image = { path, start, bytes };
    return this.structures.get(imageKey(image), () => this.pool.run({ kind: 'structure', ...image }));
  }

  /**
   * Stored values of a window of a band at one level. If the band has a mask, the values are float64 with NaN for no data.
   * Throws TW_IMAGERY_TILE_FILE.
   */
  async window(image: BandImage, level: number, window: Window): Promise<PixelArray> {
    const { path, start, bytes, band } = image;
    const { masks } = await this.structure(image);
    if (masks === 0) return this.plainWindow({ path, start, bytes, band, level, isMask: false }, window);
    const [pixels, mask] = await Promise.all([
      this.plainWindow({ path, start, bytes, band, level, isMask: false }, window),
      this.plainWindow({ path, start, bytes, band: masks > 1 ? band : 0, level, isMask: true }, window),
    ]);
    const out = Float64Array.from(pixels);
    for (let i = 0; i < out.length; i++) if (mask[i] === 0) out[i] = NaN;
    return out;
  }

  private async plainWindow(plane: Omit<BlockTask, 'block'>, window: Window): Promise<PixelArray> {
    const { dataType, levels } = await this.structure(plane);
    const { width, blockWidth, blockHeight } = levels[plane.level];
    const across = Math.ceil(width / blockWidth);
    const right = window.column + window.width;
    const bottom = window.row + window.height;
    const out = allocatePixels(plane.isMask ? 'uint8' : dataType, window.width * window.height);
    const copies: Promise<void>[] = [];
    for (let top = window.row - (window.row % blockHeight); top < bottom; top += blockHeight) {
      for (let left = window.column - (window.column % blockWidth); left < right; left += blockWidth) {
        const block = (top / blockHeight) * across + left / blockWidth;
        const copy = (pixels: PixelArray) =>
          copyBlock(pixels, { column: left, row: top, width: blockWidth, height: blockHeight }, out, window);
        copies.push(this.block({ ...plane, block }).then(copy));
      }
    }
    await Promise.all(copies);
    return out;
  }

  private block(task: BlockTask): Promise<PixelArray> {
    const { level, band, block, isMask } = task;
    return this.blocks.get(`${imageKey(task)} ${level} ${isMask ? 'mask' : ''}${band} ${block}`, () =>
      this.pool.run({ kind: 'block', ...task }),
    );
  }
}

/** Copies the intersection of a block and a window. */
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
