/** LZW and PackBits, the codecs of bytes in TIFF (TIFF 6.0, sections 9 and 13). */
const CLEAR_CODE = 256;
const END_CODE = 257;
const FIRST_CODE = 258;
const MAX_CODES = 4096;

/**
 * Decodes into `output` until it is full, the data end, or the end code occurs. Returns the number of bytes written. Throws a RangeError
 * for a code that does not exist yet.
 *
 * LZW of TIFF (TIFF 6.0, section 13): codes of 9 to 12 bits, most significant bit first, widened one code early. A table entry is the
 * string of the previous code plus the first byte of the next string. The output already holds these bytes one after another, so an entry
 * is an offset in the output and a length. Files from before 1991 have the least significant bit first and widen one code later; like
 * libtiff, the decoder detects them by their first code.
 */
export function decodeLzw(input: Uint8Array, output: Uint8Array): number {
  const places = new Int32Array(MAX_CODES);
  const lengths = new Int32Array(MAX_CODES);
  const isOld = input[0] === 0 && (input[1]! & 1) === 1;
  const early = isOld ? 0 : 1;
  let codes = FIRST_CODE;
  let width = 9;
  let bits = 0;
  let bitCount = 0;
  let next = 0;
  let at = 0;
  /** The previous string: its offset in the output; length 0 after a clear code. */
  let lastPlace = 0;
  let lastLength = 0;

  while (at < output.length) {
    while (bitCount < width) {
      if (next >= input.length) return at;
      const byte = input[next++]!;
      bits = isOld ? bits | (byte << bitCount) : (bits << 8) | byte;
      bitCount += 8;
    }
    bitCount -= width;
    const code = (isOld ? bits : bits >>> bitCount) & ((1 << width) - 1);
    bits = isOld ? bits >>> width : bits & ((1 << bitCount) - 1);

    if (code === END_CODE) return at;
    if (code === CLEAR_CODE) {
      codes = FIRST_CODE;
      width = 9;
      lastLength = 0;
      continue;
    }
    // The entry that ends with the first byte of this string: it may be this code itself.
    if (lastLength > 0 && codes < MAX_CODES) {
      places[codes] = lastPlace;
      lengths[codes] = lastLength + 1;
      codes++;
      if (codes + early >= 1 << width && width < 12) width++;
    }
    lastPlace = at;
    if (code < 256) {
      output[at++] = code;
      lastLength = 1;
      continue;
    }
    if (code >= codes) throw new RangeError(`LZW code ${code} of ${codes}`);
    const length = Math.min(lengths[code], output.length - at);
    const from = places[code];
    // Byte by byte, because the string may overlap its own end.
    for (let i = 0; i < length; i++) output[at + i] = output[from + i];
    at += length;
    lastLength = length;
  }
  return at;
}

/**
 * PackBits: runs of one byte, and literal runs. Decodes into `output` until it is full or the input ends. Returns the number of bytes
 * written. A run that exceeds the output is cut off, as libtiff does.
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
