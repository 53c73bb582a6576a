/** A rolling window over the rows of one source file, in memory that worker threads share. */
import { blockRows, bytesPerSample, type RasterHeader } from '../raster/index.js';

/** One piece of decoding work: rows [rowStart, rowEnd) of a file, at block borders. */
export interface DecodeTask {
  kind: 'decode';
  header: RasterHeader;
  bands: number[];
  rowStart: number;
  rowEnd: number;
  /** One buffer a band; row r is written at (r - firstRow) * width. */
  into: SharedArrayBuffer[];
  firstRow: number;
}

/**
 * Invariant: the buffers hold exactly the decoded rows [start, end). Both are block borders or the image's end, so every
 * block is decoded once however the window moves, as long as it moves downwards.
 */
export class RowWindow {
  readonly header: RasterHeader;
  readonly bands: number[];
  readonly buffers: SharedArrayBuffer[];
  start = 0;
  end = 0;

  /** `capacity` is the greatest number of rows that `advance` will be asked to hold. */
  constructor(header: RasterHeader, bands: number[], capacity: number) {
    this.header = header;
    this.bands = bands;
    this.buffers = bands.map(() => new SharedArrayBuffer(capacity * rowBytes(header)));
  }

  /** Moves the window to hold the blocks of rows [from, to), and returns the work that fills its new rows. */
  advance(from: number, to: number, tasks: number): DecodeTask[] {
    const [start, end] = blockRows(this.header, from, to);
    const kept = Math.max(0, this.end - start);
    if (kept > 0 && start > this.start) {
      const bytes = rowBytes(this.header);
      for (const buffer of this.buffers) {
        new Uint8Array(buffer).copyWithin(0, (start - this.start) * bytes, (this.end - this.start) * bytes);
      }
    }
    const firstNew = Math.max(start, Math.min(this.end, end));
    this.start = start;
    this.end = Math.max(end, kept > 0 ? this.end : 0);
    return this.split(firstNew, this.end, tasks);
  }

  private split(from: number, to: number, tasks: number): DecodeTask[] {
    const { header, bands, buffers, start } = this;
    const block = header.blocks.height;
    const step = Math.max(1, Math.ceil((to - from) / block / tasks)) * block;
    const work: DecodeTask[] = [];
    for (let row = from; row < to; row += step) {
      const rowEnd = Math.min(to, row + step);
      work.push({ kind: 'decode', header, bands, rowStart: row, rowEnd, into: buffers, firstRow: start });
    }
    return work;
  }
}

export function rowBytes(header: RasterHeader): number {
  return header.width * bytesPerSample(header.dataType);
}
