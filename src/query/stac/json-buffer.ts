/**
 * JSON as it is put together: texts, and bytes that were made of text before.
 * Invariant: the first `length` bytes of `buffer` are what was added, in its order.
 */
export class JsonBuffer {
  private buffer: Buffer;
  private length = 0;

  /** So many bytes are to be expected; it takes more. */
  constructor(expected = 2 ** 16) {
    this.buffer = Buffer.allocUnsafe(expected);
  }

  text(text: string): void {
    // No character of a string takes more bytes than that.
    this.reserve(3 * text.length);
    this.length += this.buffer.write(text, this.length);
  }

  bytes(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.buffer.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** All of it; nothing is added any more. */
  take(): Buffer {
    return this.buffer.subarray(0, this.length);
  }

  private reserve(more: number): void {
    if (this.length + more <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.length + more));
    this.buffer.copy(larger, 0, 0, this.length);
    this.buffer = larger;
  }
}
