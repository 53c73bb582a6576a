/** Encodes directories of classic little-endian TIFF files (TIFF 6.0, section 2), and combines checksums of their pieces. */

/** One field. The fields of a directory must be in ascending order of their tags. */
export type IfdEntry =
  | { tag: number; type: 'ascii'; value: string }
  | { tag: number; type: 'short' | 'long' | 'double'; value: ArrayLike<number> };

/** Length of the header of a file. */
const HEADER_BYTES = 8;

const TYPE = {
  ascii: { code: 2, bytes: 1 },
  short: { code: 3, bytes: 2, write: 'writeUInt16LE' },
  long: { code: 4, bytes: 4, write: 'writeUInt32LE' },
  double: { code: 12, bytes: 8, write: 'writeDoubleLE' },
} as const;

function valueBytes(entry: IfdEntry): number {
  if (entry.type === 'ascii') return Buffer.byteLength(entry.value) + 1;
  return entry.value.length * TYPE[entry.type].bytes;
}

/** Length of a directory with the values that do not fit into its entries, each at an even offset. */
function ifdSize(entries: IfdEntry[]): number {
  let bytes = 2 + entries.length * 12 + 4;
  for (const entry of entries) {
    const length = valueBytes(entry);
    if (length > 4) bytes += length + (length % 2);
  }
  return bytes;
}

/** Length of the header of a file with these directories. */
export function headSize(directories: IfdEntry[][]): number {
  return directories.reduce((bytes, entries) => bytes + ifdSize(entries), HEADER_BYTES);
}

/** The header of a file, followed by its directories. */
export function encodeHead(directories: IfdEntry[][]): Buffer {
  const head = Buffer.alloc(headSize(directories));
  head.write('II*\0', 0, 'latin1');
  head.writeUInt32LE(HEADER_BYTES, 4);
  let start = HEADER_BYTES;
  for (const [i, entries] of directories.entries()) {
    const next = start + ifdSize(entries);
    writeIfd(head, start, entries, i + 1 < directories.length ? next : 0);
    start = next;
  }
  return head;
}

/**
 * Writes a directory and its values; `next` is the offset of the following directory, 0 for none. Values that do not fit into
 * their entries follow the directory: first all numbers, then texts from the shortest to the longest, so that a reader of
 * pixels need not read the metadata of hundreds of bands.
 */
function writeIfd(out: Buffer, start: number, entries: IfdEntry[], next: number): void {
  out.writeUInt16LE(entries.length, start);
  const places = new Map<IfdEntry, number>();
  let values = start + 2 + entries.length * 12 + 4;
  const textLength = (entry: IfdEntry) => (entry.type === 'ascii' ? entry.value.length + 1 : 0);
  for (const entry of entries.toSorted((a, b) => textLength(a) - textLength(b))) {
    const length = valueBytes(entry);
    if (length <= 4) continue;
    places.set(entry, values);
    values += length + (length % 2);
  }
  for (const [i, entry] of entries.entries()) {
    const at = start + 2 + i * 12;
    const { code, bytes } = TYPE[entry.type];
    out.writeUInt16LE(entry.tag, at);
    out.writeUInt16LE(code, at + 2);
    out.writeUInt32LE(valueBytes(entry) / bytes, at + 4);
    const place = places.get(entry);
    if (place !== undefined) out.writeUInt32LE(place, at + 8);
    const valuesAt = place ?? at + 8;
    if (entry.type === 'ascii') out.write(entry.value, valuesAt);
    else {
      const { write } = TYPE[entry.type];
      for (let k = 0; k < entry.value.length; k++) out[write](entry.value[k], valuesAt + k * bytes);
    }
  }
  out.writeUInt32LE(next, start + 2 + entries.length * 12);
}

/** The polynomial of CRC-32, with reversed bits. */
const CRC32_POLYNOMIAL = 0xedb88320;

/**
 * Combines the CRC-32 of two pieces without their bytes (Mark Adler's crc32_combine of zlib). `first` and `second` are the CRCs of the
 * pieces; the second piece has `length` bytes.
 */
export function combineCrc32(first: number, second: number, length: number): number {
  // Append as many zero bytes to the first piece as the second has: x^(8 * length) modulo the polynomial.
  return (multiplyPolynomials(powerOfX(8 * length), first) ^ second) >>> 0;
}

/** Product of two polynomials over GF(2) modulo that of CRC-32; the highest bit is x^0. */
function multiplyPolynomials(a: number, b: number): number {
  let product = 0;
  for (let bit = 0x80000000; ; bit >>>= 1) {
    if (a & bit) product ^= b;
    if ((a & (bit - 1)) === 0 || bit === 1) return product >>> 0;
    b = b & 1 ? (b >>> 1) ^ CRC32_POLYNOMIAL : b >>> 1;
  }
}

/** x^n modulo the polynomial, by squaring. `n` may have more than 32 bits. */
function powerOfX(n: number): number {
  let power = 0x80000000;
  let square = 0x40000000;
  for (let rest = n; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) power = multiplyPolynomials(square, power);
    square = multiplyPolynomials(square, square);
  }
  return power;
}
