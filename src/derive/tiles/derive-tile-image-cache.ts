/** Cache of the images that a thread has read recently: many cells are cut out of one file. */
import type { PixelArray } from '../../raster/index.js';

/** Images that were unused for this time may be dropped before the memory is full. */
const UNUSED_AFTER_MS = 10_000;
/** Alignment of the largest pixel type. */
const ALIGNMENT_BYTES = 8;

interface Entry {
  begin: number;
  end: number;
  pixels: PixelArray;
  usedAt: number;
}

/**
 * A ring buffer of one ArrayBuffer; the oldest images are dropped first. Single arrays would stay in memory until V8 collects them, which
 * it does only when a thread has 64 MB of them. Once all images are unused, writing begins at the start again.
 *
 * Invariant: `entries` are in the order in which they were written, and do not overlap.
 */
export class ImageCache {
  private memory: ArrayBuffer | undefined;
  private readonly entries = new Map<string, Entry>();
  private end = 0;

  constructor(
    private readonly bytes: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Returns pixels that are good until the next `set`. */
  get(key: string): PixelArray | undefined {
    const entry = this.entries.get(key);
    if (entry) entry.usedAt = this.now();
    return entry?.pixels;
  }

  /** Copies pixels, and drops the oldest images if there is no room. Does nothing if the image is larger than the memory. */
  set(key: string, pixels: PixelArray): void {
    const length = Math.ceil(pixels.byteLength / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
    this.entries.delete(key);
    if (length === 0 || length > this.bytes) return;
    this.dropOldest(({ usedAt }) => this.now() - usedAt > UNUSED_AFTER_MS);
    // A thread that is rarely used then touches the same few pages.
    if (this.entries.size === 0 || this.end + length > this.bytes) {
      // Images after the end are older than those before it; without them the order stays that of writing.
      this.dropOldest((entry) => entry.begin >= this.end);
      this.end = 0;
    }
    const [begin, end] = [this.end, this.end + length];
    this.dropOldest((entry) => entry.begin < end && begin < entry.end);
    this.memory ??= new ArrayBuffer(this.bytes);
    const copy = viewOf(pixels, this.memory, begin);
    copy.set(pixels as never);
    this.entries.set(key, { begin, end, pixels: copy, usedAt: this.now() });
    this.end = end;
  }

  private dropOldest(isDue: (entry: Entry) => boolean): void {
    for (const [key, entry] of this.entries) {
      if (!isDue(entry)) return;
      this.entries.delete(key);
    }
  }
}

/** An array of the same type and length. */
function viewOf(pixels: PixelArray, memory: ArrayBuffer, offset: number): PixelArray {
  const Type = pixels.constructor as new (memory: ArrayBuffer, offset: number, length: number) => PixelArray;
  return new Type(memory, offset, pixels.length);
}
