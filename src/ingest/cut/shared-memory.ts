/** Memory for source pixels that threads share. */
import { rowsExceedMemory } from '../errors.js';

/** A part of the arena; its owner gives it back by `release`, once. */
export interface Allocation {
  buffer: SharedArrayBuffer;
  /** Where it begins in the buffer, bytes; a multiple of 64. */
  offset: number;
  release(): void;
}

/** V8 makes no larger shared buffer on every machine; windows of this size lose nothing by being smaller. */
const MAX_BUFFER_BYTES = 4 * 2 ** 30;

interface AllocationRequest {
  bytes: number;
  give(piece: Allocation): void;
}

/**
 * One buffer for the windows of all ingests: buffers of their own would live until every thread has collected its reference, and so
 * exceed the budget. Pages that nothing has touched take no memory; those that were touched are kept until `free`.
 *
 * Invariants: pieces that are not released do not overlap; they are given in the order in which they were asked for.
 */
export class SharedMemory {
  readonly size: number;
  private buffer: SharedArrayBuffer | undefined;
  private readonly allocated: { from: number; to: number }[] = [];
  private readonly queue: AllocationRequest[] = [];

  constructor(bytes: number) {
    this.size = Math.min(bytes, MAX_BUFFER_BYTES);
  }

  /** Waits until there is room. `path` is named where there never will be (TW_INGEST_TOO_LARGE). */
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

  /** Lets the garbage collector free the buffer, unless a piece of it is taken. Threads that had pieces must have ended. */
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

/** Up to the next multiple of 64: a cache line, and whole pixels of every type. */
export function alignTo64(bytes: number): number {
  return Math.ceil(bytes / 64) * 64;
}
