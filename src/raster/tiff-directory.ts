/** Directories of classic little-endian TIFF files as bytes. Format: TIFF 6.0, section 2. */

/** One field; those of a directory go in ascending order of their tags. */
export type Entry =
  | { tag: number; type: 'ascii'; value: string }
  | { tag: number; type: 'short' | 'long' | 'double'; value: ArrayLike<number> };

const TYPE = {
  ascii: { code: 2, bytes: 1 },
  short: { code: 3, bytes: 2 },
  long: { code: 4, bytes: 4 },
  double: { code: 12, bytes: 8 },
} as const;

function valueBytes(entry: Entry): number {
  if (entry.type === 'ascii') return Buffer.byteLength(entry.value) + 1;
  return entry.value.length * TYPE[entry.type].bytes;
}

/** Length of a directory with the values that do not fit into its entries, each on an even offset. */
export function directoryBytes(entries: Entry[]): number {
  let bytes = 2 + entries.length * 12 + 4;
  for (const entry of entries) {
    const length = valueBytes(entry);
    if (length > 4) bytes += length + (length % 2);
  }
  return bytes;
}

/** Writes a directory and its values; `next` is where the following one begins, 0 for none. */
export function writeDirectory(out: Buffer, start: number, entries: Entry[], next: number): void {
  out.writeUInt16LE(entries.length, start);
  let at = start + 2;
  let values = at + entries.length * 12 + 4;
  for (const entry of entries) {
    const length = valueBytes(entry);
    const { code, bytes } = TYPE[entry.type];
    out.writeUInt16LE(entry.tag, at);
    out.writeUInt16LE(code, at + 2);
    out.writeUInt32LE(length / bytes, at + 4);
    let to = at + 8;
    if (length > 4) {
      out.writeUInt32LE(values, to);
      to = values;
      values += length + (length % 2);
    }
    if (entry.type === 'ascii') out.write(entry.value, to);
    else writeNumbers(out, to, entry.type, entry.value);
    at += 12;
  }
  out.writeUInt32LE(next, at);
}

function writeNumbers(
  out: Buffer,
  at: number,
  type: 'short' | 'long' | 'double',
  value: ArrayLike<number>,
): void {
  for (let i = 0; i < value.length; i++) {
    if (type === 'short') out.writeUInt16LE(value[i], at + i * 2);
    else if (type === 'long') out.writeUInt32LE(value[i], at + i * 4);
    else out.writeDoubleLE(value[i], at + i * 8);
  }
}
