/** A rolling window over the rows of one source file, in memory that worker threads share. */
import { bytesPerSample, type RasterHeader, type RowsRequest } from '../../raster/index.js';
import type { RowRange } from '../plan/index.js';

/** One piece of decoding work: rows [rowStart, rowEnd) of a file. */
export interface DecodeRequest extends Omit<RowsRequest, 'into'> {
  buffer: SharedArrayBuffer;
  /** Offset of each band's part of the buffer, bytes; row r lies at (r - firstRow) * width pixels from there. */
  offsets: number[];
}

/**
 * Invariant: when the work of the last `advance` is done, the window holds the decoded rows [start, end); rows in two
 * consecutive windows are decoded once.
 */
export class RowBuffer {
  start = 0;
  end = 0;

  constructor(
    readonly header: RasterHeader,
    readonly bands: number[],
    private readonly buffer: SharedArrayBuffer,
    /** One for each band, with room for as many rows as the largest window of `advance`. */
    readonly offsets: number[],
  ) {}

  /** Moves the window to rows [start, end). Returns the decoding work for its new rows, in at most `pieces` pieces. */
  advance([start, end]: RowRange, pieces: number): DecodeRequest[] {
    const from = Math.max(start, this.start);
    const to = Math.min(end, this.end);
    const kept = from < to;
    if (kept && start !== this.start) {
      const bytes = rowBytes(this.header);
      for (const offset of this.offsets) {
        const band = new Uint8Array(this.buffer, offset);
        band.copyWithin((from - start) * bytes, (from - this.start) * bytes, (to - this.start) * bytes);
      }
    }
    this.start = start;
    this.end = end;
    return kept
      ? [...this.decode(start, from, pieces), ...this.decode(to, end, pieces)]
      : this.decode(start, end, pieces);
  }

  /** Pieces start at block boundaries, so that no two of them decode the same block. */
  private decode(from: number, to: number, pieces: number): DecodeRequest[] {
    const { header, bands, buffer, offsets, start: firstRow } = this;
    const block = header.blocks.height;
    // Other readers have a start-up cost for each piece.
    const count = header.blocks.reader === 'tiff' ? pieces : 1;
    const step = Math.max(1, Math.ceil((to - from) / block / count)) * block;
    const work: DecodeRequest[] = [];
    for (let row = from; row < to; ) {
      const rowEnd = Math.min(to, Math.floor(row / block) * block + step);
      work.push({ header, bands, rowStart: row, rowEnd, buffer, offsets, firstRow });
      row = rowEnd;
    }
    return work;
  }
}

export function rowBytes(header: RasterHeader): number {
  return header.width * bytesPerSample(header.dataType);
}
