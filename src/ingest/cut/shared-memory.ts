/** Memory for source pixels that threads share. */
import { tooLarge } from '../errors.js';

/** A part of the arena; its owner gives it back by `release`, once. */
export interface Piece {
  buffer: SharedArrayBuffer;
  /** Where it begins in the buffer, bytes; a multiple of 64. */
  offset: number;
  release(): void;
}

/** V8 makes no larger shared buffer on every machine; windows of this size lose nothing by being smaller. */
const LARGEST = 4 * 2 ** 30;

interface Waiting {
  bytes: number;
  give(piece: Piece): void;
}

/**
 * One buffer for the windows of all ingests: buffers of their own would live until every thread has collected its reference, and so
 * exceed the budget. Pages that nothing has touched take no memory; those that were touched are kept until `free`.
 *
 * Invariants: pieces that are not released do not overlap; they are given in the order in which they were asked for.
 */
export class Arena {
  readonly size: number;
  private buffer: SharedArrayBuffer | undefined;
  private readonly taken: { from: number; to: number }[] = [];
  private readonly waiting: Waiting[] = [];

  constructor(bytes: number) {
    this.size = Math.min(bytes, LARGEST);
  }

  /** Waits until there is room. `path` is named where there never will be (TW_INGEST_TOO_LARGE). */
  async take(bytes: number, path: string, signal?: AbortSignal): Promise<Piece> {
    if (bytes > this.size) throw tooLarge(path, bytes, this.size);
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.waiting.splice(this.waiting.indexOf(request), 1);
        reject(signal?.reason);
        this.serve();
      };
      const request: Waiting = {
        bytes,
        give: (piece) => {
          signal?.removeEventListener('abort', abort);
          resolve(piece);
        },
      };
      signal?.addEventListener('abort', abort, { once: true });
      this.waiting.push(request);
      this.serve();
    });
  }

  /** Lets the garbage collector free the buffer, unless a piece of it is taken. Threads that had pieces must have ended. */
  free(): void {
    if (this.taken.length === 0) this.buffer = undefined;
  }

  private serve(): void {
    for (let next = this.waiting[0]; next; next = this.waiting[0]) {
      const from = this.findRoom(next.bytes);
      if (from === undefined) return;
      this.waiting.shift();
      const range = { from, to: from + next.bytes };
      this.taken.push(range);
      this.taken.sort((a, b) => a.from - b.from);
      this.buffer ??= new SharedArrayBuffer(this.size);
      next.give({
        buffer: this.buffer,
        offset: from,
        release: () => {
          this.taken.splice(this.taken.indexOf(range), 1);
          this.serve();
        },
      });
    }
  }

  /** The first gap that is large enough. */
  private findRoom(bytes: number): number | undefined {
    let from = 0;
    for (const range of this.taken) {
      if (range.from - from >= bytes) return from;
      from = aligned(range.to);
    }
    return this.size - from >= bytes ? from : undefined;
  }
}

/** Up to the next multiple of 64: a cache line, and whole pixels of every type. */
export function aligned(bytes: number): number {
  return Math.ceil(bytes / 64) * 64;
}
