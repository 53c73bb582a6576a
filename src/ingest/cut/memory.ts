/** Memory for source pixels that threads share, and rolling windows over the rows of source files in it. */

import { bytesPerSample, type RasterHeader, type RowsRequest } from '../../raster/index.js';
import type { RowRange } from '../cells.js';
import { rowsExceedMemory } from '../errors.js';

/** A part of the buffer; its owner calls `release` once. */
export interface Allocation {
  buffer: SharedArrayBuffer;
  /** Offset in the buffer, bytes; a multiple of 64. */
  offset: number;
  release(): void;
}

/** V8 does not support larger shared buffers on every machine. Windows of this size are large enough. */
const MAX_BUFFER_BYTES = 4 * 2 ** 30;

interface AllocationRequest {
  bytes: number;
  give(piece: Allocation): void;
}

/**
 * One buffer for the windows of all ingests. Separate buffers would live until every thread has collected its reference, and
 * so exceed the budget. Untouched pages use no memory; touched ones are kept until `releaseBuffer`.
 *
 * Invariants: allocations that are not released do not overlap; they are granted in the order of the requests.
 */
export class SharedMemory {
  readonly size: number;
  private buffer: SharedArrayBuffer | undefined;
  private readonly allocated: { from: number; to: number }[] = [];
  private readonly queue: AllocationRequest[] = [];

  constructor(bytes: number) {
    this.size = Math.min(bytes, MAX_BUFFER_BYTES);
  }

  /** Waits until there is room. Throws TW_INGEST_TOO_LARGE, naming `path`, if there never will be. */
  async allocate(bytes: number, path: string, signal?: AbortSignal): Promise<Allocation> {
    if (bytes > this.size) throw rowsExceedMemory(path, bytes, this.size);
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.queue.splice(this.queue.indexOf(request), 1);
        reject(signal?.reason);
        this.serveQueue();
      };
      const request: AllocationRequest = {
        bytes,
        give: (piece) => {
          signal?.removeEventListener('abort', abort);
          resolve(piece);
        },
      };
      signal?.addEventListener('abort', abort, { once: true });
      this.queue.push(request);
      this.serveQueue();
    });
  }

  /** Lets the garbage collector free the buffer, unless a part of it is allocated. Threads that used it must have ended. */
  releaseBuffer(): void {
    if (this.allocated.length === 0) this.buffer = undefined;
  }

  private serveQueue(): void {
    for (let next = this.queue[0]; next; next = this.queue[0]) {
      const from = this.findGap(next.bytes);
      if (from === undefined) return;
      this.queue.shift();
      const range = { from, to: from + next.bytes };
      this.allocated.push(range);
      this.allocated.sort((a, b) => a.from - b.from);
      this.buffer ??= new SharedArrayBuffer(this.size);
      next.give({
        buffer: this.buffer,
        offset: from,
        release: () => {
          this.allocated.splice(this.allocated.indexOf(range), 1);
          this.serveQueue();
        },
      });
    }
  }

  /** The first gap that is large enough. */
  private findGap(bytes: number): number | undefined {
    let from = 0;
    for (const range of this.allocated) {
      if (range.from - from >= bytes) return from;
      from = alignTo64(range.to);
    }
    return this.size - from >= bytes ? from : undefined;
  }
}

/** Rounds up to a multiple of 64: a cache line, and complete pixels of every type. */
export function alignTo64(bytes: number): number {
  return Math.ceil(bytes / 64) * 64;
}

/** One piece of decoding work: rows [rowStart, rowEnd) of a file. */
export interface DecodeRequest extends Omit<RowsRequest, 'into'> {
  buffer: SharedArrayBuffer;
  /** Offset of each band's part of the buffer, bytes; row r lies at (r - firstRow) * width pixels from there. */
  offsets: number[];
}

/**
 * A rolling window over the rows of one source file. Invariant: when the work of the last `advance` is done, the window holds the decoded
 * rows [start, end); rows in two consecutive windows are decoded once.
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
