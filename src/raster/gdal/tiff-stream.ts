/** Takes uncompressed TIFFs apart as they come through a pipe. */

/** Bytes within which the directory and the place of the first row must be found. */
const MAX_HEADER_BYTES = 1 << 16;
const STRIP_OFFSETS = 273;
const LONG8 = 16;

/** What is expected of one TIFF. */
export interface StreamedImage {
  rowBytes: number;
  height: number;
  /** Called with each row; the bytes are good until it returns, and aligned for any type. */
  take(bytes: Uint8Array, row: number): void;
}

/**
 * Little-endian BigTIFFs one after another, in each of which the directory comes first and rows follow each other to its end, as
 * GDAL writes them with STREAMABLE_OUTPUT=YES.
 *
 * Invariant: all images before number `image` are complete, and it is not, unless it is the last. Of it, `head` is kept until the place of the first row is
 * known; then `skip` bytes are left before it, and `row` holds the first `filled` bytes of row number `rows`.
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

  /** Whether all rows of the last image have come. */
  get complete(): boolean {
    return this.rows === this.images[this.image].height;
  }

  /** Takes the next bytes; returns what is wrong with them. */
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

  /** Takes what belongs to this image, and returns the rest. */
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

/** Where the first row begins: undefined where more bytes are needed to tell, text where this is no such file. */
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
