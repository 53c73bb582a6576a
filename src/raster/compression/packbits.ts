/** PackBits (TIFF 6.0, section 9): runs of one byte, and literal runs. */

/**
 * Decodes into `output` until it is full or the input ends. Returns the number of bytes written. A run that exceeds the output is cut
 * off, as libtiff does.
 */
export function decodePackbits(input: Uint8Array, output: Uint8Array): number {
  let next = 0;
  let at = 0;
  while (next < input.length && at < output.length) {
    const head = input[next++];
    // 128 has no meaning.
    if (head === 128) continue;
    if (head < 128) {
      const run = input.subarray(next, next + Math.min(head + 1, output.length - at));
      output.set(run, at);
      at += run.length;
      next += head + 1;
    } else if (next < input.length) {
      const end = Math.min(at + 257 - head, output.length);
      output.fill(input[next++], at, end);
      at = end;
    }
  }
  return at;
}
