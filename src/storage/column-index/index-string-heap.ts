/** Short texts in one buffer. */

/** Bytes before a text that contain its length. */
const LENGTH_BYTES = 2;

/**
 * Texts are added and never change; each is identified by its offset. Offset 0 is the empty text.
 * Invariant: `bytes` up to `used` are texts in UTF-8, each after its length in bytes (little endian).
 */
export class StringHeap {
  private constructor(
    private bytes: Buffer,
    private used: number,
  ) {}

  /** A heap with the `contents` of another one, or an empty heap. */
  static of({ buffer, byteOffset, length }: Uint8Array): StringHeap {
    return length === 0
      ? new StringHeap(Buffer.alloc(1024), LENGTH_BYTES)
      : new StringHeap(Buffer.from(buffer, byteOffset, length), length);
  }

  get contents(): Uint8Array {
    return this.bytes.subarray(0, this.used);
  }

  add(text: string): number {
    if (text === '') return 0;
    const length = Buffer.byteLength(text);
    if (length >= 1 << 16) throw new Error(`a text of ${length} bytes is too long for the column index`);
    const offset = this.reserve(LENGTH_BYTES + length);
    this.bytes.writeUInt16LE(length, offset);
    this.bytes.write(text, offset + LENGTH_BYTES);
    return offset;
  }

  get(offset: number): string {
    if (offset === 0) return '';
    const from = offset + LENGTH_BYTES;
    return this.bytes.toString('utf8', from, from + this.bytes.readUInt16LE(offset));
  }

  /** True if the text begins with the ASCII character of this code. */
  beginsWith(offset: number, code: number): boolean {
    return offset !== 0 && this.bytes[offset + LENGTH_BYTES] === code;
  }

  /** Adds a text of another heap. */
  copy(from: StringHeap, at: number): number {
    if (at === 0) return 0;
    const length = LENGTH_BYTES + from.bytes.readUInt16LE(at);
    const offset = this.reserve(length);
    from.bytes.copy(this.bytes, offset, at, at + length);
    return offset;
  }

  private reserve(length: number): number {
    const offset = this.used;
    this.used += length;
    if (this.used > this.bytes.length) {
      const larger = Buffer.alloc(2 * this.used);
      this.bytes.copy(larger, 0, 0, offset);
      this.bytes = larger;
    }
    return offset;
  }
}
