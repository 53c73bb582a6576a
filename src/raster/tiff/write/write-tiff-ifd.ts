/** Encodes directories of classic little-endian TIFF files (TIFF 6.0, section 2). */

/** One field. The fields of a directory must be in ascending order of their tags. */
export type IfdEntry =
  | { tag: number; type: 'ascii'; value: string }
  | { tag: number; type: 'short' | 'long' | 'double'; value: ArrayLike<number> };

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
  return directories.reduce((bytes, entries) => bytes + ifdSize(entries), 8);
}

/** The header of a file, followed by its directories. */
export function encodeHead(directories: IfdEntry[][]): Buffer {
  const head = Buffer.alloc(headSize(directories));
  head.write('II*\0', 0, 'latin1');
  head.writeUInt32LE(8, 4);
  let start = 8;
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
