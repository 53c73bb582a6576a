/** Reads pixels of an array in a MATLAB file, which is stored in column order, band after band. */
import { createReadStream } from 'node:fs';
import { createInflate } from 'node:zlib';
import { TilewrightError } from '../../errors.js';
import { corrupt, rasterUnreadable, truncated } from '../errors.js';
import { bytesPerStored, readStoredNumbers, swapBytes } from '../pixels/index.js';
import type { HeaderOf, MatBlocks, PixelArray, ReadTarget, Window } from '../raster-types.js';

export type MatHeader = HeaderOf<MatBlocks>;

/** Limit of the padding at the end of an element, bytes. */
const PADDING = 7;
const READ_BUFFER_BYTES = 2 ** 18;

/**
 * Reads a window of some bands (from 0); both lie within the image. Reads the array from its start to its end, one column at a
 * time, so that memory is bounded and its checksum is verified. Throws TW_RASTER_UNREADABLE, _CORRUPT and _TRUNCATED.
 */
export async function readMat(
  header: MatHeader,
  bands: number[],
  window: Window,
  target: ReadTarget,
): Promise<void> {
  const { path, blocks } = header;
  const { start, bytes, isCompressed } = blocks;
  const stored = createReadStream(path, { start, end: start + bytes - 1, highWaterMark: READ_BUFFER_BYTES });
  const element = isCompressed ? stored.pipe(createInflate({ chunkSize: READ_BUFFER_BYTES })) : stored;
  stored.once('error', (error) => element.destroy(error));
  const columns = new ColumnReader(header, bands, window, target);
  try {
    for await (const piece of element) columns.take(piece);
    columns.end();
  } catch (error) {
    if (error instanceof TilewrightError) throw error;
    const isOfZlib = String((error as NodeJS.ErrnoException).code).startsWith('Z_');
    if (isOfZlib) throw corrupt.because(error, path, 'its array cannot be decompressed');
    throw rasterUnreadable.because(error, path, error);
  } finally {
    stored.destroy();
  }
}

/**
 * Accepts the bytes of an element in pieces, and writes the pixels of a window to the target. Invariant: `done` columns of all
 * bands are complete; `column` holds the first `filled` bytes of the next one.
 */
class ColumnReader {
  private readonly arrays: ReadonlyMap<number, PixelArray>;
  /** Separate memory, so that numbers of every size are aligned. */
  private readonly column: Buffer;
  private readonly count: number;
  /** Remaining bytes before the first number, and bytes after the last one. */
  private before: number;
  private after = 0;
  private done = 0;
  private filled = 0;

  constructor(
    private readonly header: MatHeader,
    bands: number[],
    private readonly window: Window,
    private readonly target: ReadTarget,
  ) {
    const { width, height, blocks } = header;
    this.arrays = new Map(bands.map((band, i) => [band, target.arrays[i]!]));
    this.column = Buffer.from(new ArrayBuffer(height * bytesPerStored(blocks.storedType)));
    this.count = width * header.bands;
    this.before = blocks.dataOffset;
  }

  take(piece: Buffer): void {
    let at = Math.min(this.before, piece.length);
    this.before -= at;
    while (at < piece.length && this.done < this.count) {
      const copied = piece.copy(this.column, this.filled, at);
      at += copied;
      this.filled += copied;
      if (this.filled < this.column.length) continue;
      this.put(this.done++);
      this.filled = 0;
    }
    this.after += piece.length - at;
    if (this.after > PADDING) throw corrupt(this.header.path, 'its array is longer than it says');
  }

  /** Throws TW_RASTER_TRUNCATED if columns are missing. */
  end(): void {
    const { done, count, header } = this;
    if (done < count) throw truncated(header.path, `its array ends after ${done} of ${count} columns`);
  }

  private put(index: number): void {
    const { column, row, height: rows, width: columns } = this.window;
    const { width, height, blocks } = this.header;
    const { offset, stride } = this.target;
    const array = this.arrays.get(Math.floor(index / width));
    const across = (index % width) - column;
    if (!array || across < 0 || across >= columns) return;
    if (!blocks.littleEndian) swapBytes(this.column, this.column.length / height);
    const numbers = readStoredNumbers(blocks.storedType, this.column.buffer, 0, height);
    for (let y = 0; y < rows; y++) array[offset + y * stride + across] = numbers[row + y]!;
  }
}
