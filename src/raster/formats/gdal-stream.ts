/** Parses a stream of uncompressed TIFFs. */

/** The directory and the offset of the first row must lie within this many bytes. */
const MAX_HEADER_BYTES = 1 << 16;
const STRIP_OFFSETS = 273;
const LONG8 = 16;

/** Properties that one TIFF must have. */
export interface StreamedImage {
  rowBytes: number;
  height: number;
  /** Called with each row; the bytes are valid until it returns, and aligned for any type. */
  take(bytes: Uint8Array, row: number): void;
}

/**
 * Parses consecutive little-endian BigTIFFs, in which the directory comes first and rows follow in order, as GDAL writes them
 * with STREAMABLE_OUTPUT=YES. Invariant: all images before number `image` are complete; image number `image` is not, unless it
 * is the last. `head` holds its start until the offset of the first row is known; then `skip` bytes remain before that row,
 * and `row` holds the first `filled` bytes of row number `rows`.
 */
export class TiffStreamParser {
  image = 0;
  rows = 0;
  private head = Buffer.alloc(0);
  private skip: number | undefined;
  private row: Uint8Array;
  private filled = 0;

  /** At least one image. */
  constructor(private readonly images: StreamedImage[]) {
    this.row = new Uint8Array(images[0].rowBytes);
  }

  /** True if all rows of the last image have been parsed. */
  get complete(): boolean {
    return this.rows === this.images[this.image].height;
  }

  /** Parses the next bytes; returns a description of an error in them. */
  push(chunk: Uint8Array): string | undefined {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.complete) return `more than ${this.rows} rows`;
      if (this.skip === undefined) {
        this.head = Buffer.concat([this.head, rest]);
        const start = firstStrip(this.head);
        if (typeof start === 'string') return start;
        if (start === undefined)
          return this.head.length > MAX_HEADER_BYTES ? 'a TIFF without a directory at its start' : undefined;
        this.skip = start;
        rest = this.head;
      }
      rest = this.pixels(rest);
      if (this.complete && this.image < this.images.length - 1) this.beginImage(this.image + 1);
    }
    return undefined;
  }

  private beginImage(image: number): void {
    this.image = image;
    this.rows = 0;
    this.head = Buffer.alloc(0);
    this.skip = undefined;
    this.row = new Uint8Array(this.images[image].rowBytes);
  }

  /** Parses bytes of the current image, and returns the rest. */
  private pixels(chunk: Uint8Array): Uint8Array {
    let at = Math.min(chunk.length, this.skip ?? 0);
    this.skip = (this.skip ?? 0) - at;
    while (at < chunk.length && !this.complete) {
      const end = Math.min(chunk.length, at + this.row.length - this.filled);
      this.row.set(chunk.subarray(at, end), this.filled);
      this.filled += end - at;
      at = end;
      if (this.filled < this.row.length) break;
      this.images[this.image].take(this.row, this.rows++);
      this.filled = 0;
    }
    return chunk.subarray(at);
  }
}

/** Offset of the first row. Undefined if more bytes are needed; text if the file is not supported. */
function firstStrip(head: Buffer): number | string | undefined {
  if (head.length < 24) return undefined;
  if (head.readUInt32LE(0) !== 0x002b4949) return 'something else than a TIFF';
  const directory = Number(head.readBigUInt64LE(8));
  if (directory !== 16) return 'a TIFF without a directory at its start';
  const entries = Number(head.readBigUInt64LE(16));
  if (head.length < 24 + entries * 20) return undefined;
  for (let at = 24; at < 24 + entries * 20; at += 20) {
    if (head.readUInt16LE(at) !== STRIP_OFFSETS) continue;
    const wide = head.readUInt16LE(at + 2) === LONG8;
    const count = Number(head.readBigUInt64LE(at + 4));
    const inline = count * (wide ? 8 : 4) <= 8;
    const valueAt = inline ? at + 12 : Number(head.readBigUInt64LE(at + 12));
    if (head.length < valueAt + 8) return undefined;
    return wide ? Number(head.readBigUInt64LE(valueAt)) : head.readUInt32LE(valueAt);
  }
  return 'a TIFF without rows';
}
