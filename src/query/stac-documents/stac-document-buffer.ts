/**
 * A buffer to which JSON is appended as text, or as bytes that were encoded before.
 * Invariant: the first `length` bytes of `buffer` are the appended ones, in order.
 */
export class JsonBuffer {
  private buffer: Buffer;
  private length = 0;

  /** `capacity` is the initial capacity in bytes. */
  constructor(capacity = 2 ** 16) {
    this.buffer = Buffer.allocUnsafe(capacity);
  }

  appendText(text: string): void {
    // A UTF-16 unit has at most three bytes in UTF-8.
    this.reserve(3 * text.length);
    this.length += this.buffer.write(text, this.length);
  }

  appendBytes(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.buffer.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** The content. Nothing may be appended afterwards. */
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
