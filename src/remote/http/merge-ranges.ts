/** Merges byte ranges, so that few requests read many blocks. */

export interface ByteRange {
  offset: number;
  bytes: number;
}

/** Unused bytes between two ranges that are read rather than requested separately: at 50 ms a request, they cost less. */
const MAX_GAP_BYTES = 65_536;
/** Limit of one request, so that a few run at the same time and a failed one repeats little. */
const MAX_REQUEST_BYTES = 8 << 20;

/** Returns the requests that cover all ranges, in ascending order. */
export function mergeRanges(ranges: readonly ByteRange[]): ByteRange[] {
  const merged: ByteRange[] = [];
  for (const { offset, bytes } of [...ranges].sort((a, b) => a.offset - b.offset)) {
    if (bytes === 0) continue;
    const last = merged.at(-1);
    const end = offset + bytes;
    const isNear = last && offset - (last.offset + last.bytes) <= MAX_GAP_BYTES;
    if (isNear && end - last.offset <= Math.max(MAX_REQUEST_BYTES, last.bytes))
      last.bytes = Math.max(last.bytes, end - last.offset);
    else merged.push({ offset, bytes });
  }
  return merged;
}
