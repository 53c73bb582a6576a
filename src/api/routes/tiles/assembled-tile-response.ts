/** Reads files that consist of new bytes and of ranges of a stored file. */
import { createReadStream } from 'node:fs';
import type { AssembledFile } from '../../../raster/index.js';

/** Reads the bytes from `start` up to and including `end` of the assembled file, whose ranges refer to the file at `path`. */
export async function* readAssembled(
  path: string,
  { head, ranges }: AssembledFile,
  start: number,
  end: number,
): AsyncGenerator<Buffer> {
  if (start < head.length) yield head.subarray(start, end + 1);
  let position = head.length;
  for (const range of ranges) {
    const from = Math.max(start, position);
    const to = Math.min(end, position + range.bytes - 1);
    if (from <= to) {
      const offset = range.start - position;
      yield* createReadStream(path, { start: from + offset, end: to + offset });
    }
    position += range.bytes;
  }
}
