/**
 * Writes zlib streams (RFC 1950, 1951) of the output of TIFF's predictors: numbers near zero. Hardly anything repeats in them
 * but zeros, so Huffman codes and runs of zeros compress them as well as zlib's Z_RLE, several times faster. deflate.wat
 * (WebAssembly SIMD) does the work on each byte; without SIMD, zlib compresses.
 */
import { constants, deflateSync } from 'node:zlib';
import { loadWasmKernel } from '../../utils/wasm-loader.js';
import { UNSIGNED_BY_SIZE, viewPixels } from '../pixels/data-types.js';
import { type Adler32, canonicalCodes, codeLengths, createAdler32 } from './huffman.js';

/** A block of an image: `height` rows of `width` pixels, `stride` pixels apart, the first at `start`. */
export interface BlockView {
  /** Signed pixels are viewed as unsigned ones: differences wrap in the same way. */
  pixels: Uint8Array | Uint16Array | Uint32Array;
  start: number;
  stride: number;
  width: number;
  height: number;
}

/** The zlib stream of `data`. */
export function deflate(data: Uint8Array): Buffer {
  if (!encoder) return deflateSync(data, ZLIB);
  return encoder.encode(data.length, BLOCK_BYTES, (input, from) => {
    input.set(data.subarray(from, from + input.length));
  });
}

/**
 * The zlib stream of a block's horizontal differences (TIFF 6.0, section 14). The block is padded to outWidth x outHeight
 * pixels: rows repeat their last value, rows below are zero. outWidth is a multiple of 16, and at most 2 ** 16.
 */
export function deflateWithPredictor(block: BlockView, outWidth: number, outHeight: number): Buffer {
  const size = block.pixels.BYTES_PER_ELEMENT;
  const rowBytes = outWidth * size;
  if (!encoder) {
    const input = new Uint8Array(rowBytes * outHeight);
    const pixels = viewPixels(UNSIGNED_BY_SIZE[size], input.buffer, 0, outWidth * outHeight);
    placeDifferences(block, 0, outWidth, input, () => {
      for (let i = pixels.length - 1; i > 0; i--) pixels[i] -= pixels[i - 1];
    });
    return deflateSync(input, ZLIB);
  }
  const { difference } = encoder.kernel;
  const step = rowBytes * Math.floor(BLOCK_BYTES / rowBytes);
  return encoder.encode(rowBytes * outHeight, step, (input, from) => {
    placeDifferences(block, from / rowBytes, outWidth, input, difference);
  });
}

/**
 * Writes the differences of the block's rows from `firstRow` on, as many as fill `input`. The kernel treats them as one long
 * row; then the first pixel of each row, which has no predecessor, is restored.
 */
function placeDifferences(
  { pixels, start, stride, width, height }: BlockView,
  firstRow: number,
  outWidth: number,
  input: Uint8Array,
  difference: Kernel['difference'],
): void {
  const size = pixels.BYTES_PER_ELEMENT;
  const rows = viewPixels(UNSIGNED_BY_SIZE[size], input.buffer, input.byteOffset, input.length / size);
  const count = Math.max(0, Math.min(rows.length / outWidth, height - firstRow));
  const first = start + firstRow * stride;
  for (let row = 0; row < count; row++) {
    const from = first + row * stride;
    const to = row * outWidth;
    rows.set(pixels.subarray(from, from + width), to);
    if (width < outWidth) rows.fill(rows[to + width - 1], to + width, to + outWidth);
  }
  difference(size, count * outWidth * size);
  for (let row = 0; row < count; row++) rows[row * outWidth] = pixels[first + row * stride];
  rows.fill(0, count * outWidth);
}

interface Address {
  readonly value: number;
}

/** Exports of deflate.wat, which describes them. */
interface Kernel {
  memory: { readonly buffer: ArrayBuffer };
  bytes: Address;
  powers: Address;
  runs: Address;
  input: Address;
  output: Address;
  /** Address of the next byte. */
  out: { value: number };
  difference(size: number, length: number): void;
  count(length: number): number;
  pair(): void;
  emit(length: number): void;
  put(entry: number): void;
  align(): void;
}

/** Bytes of a block of DEFLATE. In smaller blocks the codes take more of the time; in larger ones the codes fit less well. */
const BLOCK_BYTES = 2 ** 18;
/** Limited by the size of an entry in the kernel's table of pairs. */
const MAX_CODE_BITS = 13;
/** Largest size of an encoded block, including its codes. */
const MAX_BLOCK_OUTPUT_BYTES = (BLOCK_BYTES * MAX_CODE_BITS) / 8 + 1024;

/** Run lengths and Huffman codes, too. Chunks are so large that the output is rarely joined from several. */
const ZLIB = { level: 1, strategy: constants.Z_RLE, memLevel: 9, chunkSize: 2 ** 18 };

/** The symbol that ends a block; the symbols of lengths follow (RFC 1951, 3.2.5). */
const END = 256;
const SYMBOLS = 286;
const MAX_RUN_LENGTH = 258;
/** For each match length from 3 on: its symbol and its extra bits. */
const LENGTHS = lengthSymbols();

function lengthSymbols(): { symbol: number; extra: number; extraBits: number }[] {
  const found = [];
  for (let symbol = END + 1, length = 3; symbol < SYMBOLS - 1; symbol++) {
    const extraBits = Math.max(0, Math.floor((symbol - 261) / 4));
    for (let extra = 0; extra < 2 ** extraBits; extra++) found[length++] = { symbol, extra, extraBits };
  }
  found[MAX_RUN_LENGTH] = { symbol: SYMBOLS - 1, extra: 0, extraBits: 0 };
  return found;
}

/** A table entry of the kernel: `length` bits to be sent, the lowest first. */
const entry = (bits: number, length: number) => bits * 64 + length;

/** The kernel with its tables. Outside of `encode` it has no pending bits, and its memory never grows. */
class Encoder {
  private readonly memory: Uint8Array;
  private readonly input: number;
  private readonly output: number;
  /** Tables of the kernel: first counts, then entries. */
  private readonly bytes: Uint32Array;
  private readonly powers: Uint32Array;
  private readonly runs: Uint32Array;

  constructor(
    readonly kernel: Kernel,
    private readonly adler: Adler32,
  ) {
    const { buffer } = kernel.memory;
    this.memory = new Uint8Array(buffer);
    this.input = kernel.input.value;
    this.output = kernel.output.value;
    this.bytes = new Uint32Array(buffer, kernel.bytes.value, 256);
    this.powers = new Uint32Array(buffer, kernel.powers.value, 256);
    this.runs = new Uint32Array(buffer, kernel.runs.value, MAX_RUN_LENGTH + 1);
  }

  /** The stream of `size` bytes. `place` writes up to `step` bytes at a time, from `from` on, to `input`. */
  encode(size: number, step: number, place: (input: Uint8Array, from: number) => void): Buffer {
    const { out, put, align } = this.kernel;
    const parts: Buffer[] = [];
    let sums = 1;
    align();
    out.value = this.output;
    put(entry(0x0178, 16));
    for (let from = 0, last = false; !last; from += step) {
      const length = Math.min(step, size - from);
      last = from + length === size;
      place(this.memory.subarray(this.input, this.input + length), from);
      sums = this.adler(sums, this.input, length);
      this.encodeBlock(length, last);
      if (last) this.finish(sums);
      if (last || out.value + MAX_BLOCK_OUTPUT_BYTES > this.memory.length) {
        parts.push(Buffer.from(this.memory.subarray(this.output, out.value)));
        out.value = this.output;
      }
    }
    return parts.length === 1 ? parts[0] : Buffer.concat(parts);
  }

  /** Writes Adler-32 at the next byte, highest byte first. */
  private finish(sums: number): void {
    const { put, align } = this.kernel;
    align();
    for (let shift = 24; shift >= 0; shift -= 8) put(entry((sums >>> shift) & 255, 8));
  }

  /** Encodes the `length` bytes of the input as a block with dynamic Huffman codes. */
  private encodeBlock(length: number, last: boolean): void {
    const { count, pair, emit, put } = this.kernel;
    const { bytes, powers, runs, memory } = this;
    const end = this.input + length;
    const tail = end - count(length);
    const counts = new Uint32Array(SYMBOLS);
    counts.set(bytes);
    for (let at = tail; at < end; at++) counts[memory[at]]++;
    counts[END] = 1;
    for (let run = 3; run <= MAX_RUN_LENGTH; run++) counts[LENGTHS[run].symbol] += runs[run];

    const lengths = codeLengths(counts, MAX_CODE_BITS);
    const codes = canonicalCodes(lengths);
    for (let byte = 0; byte < 256; byte++) {
      bytes[byte] = entry(codes[byte], lengths[byte]);
      powers[byte] = 64 << lengths[byte];
    }
    for (let run = 3; run <= MAX_RUN_LENGTH; run++) {
      if (runs[run] === 0) continue;
      const { symbol, extra, extraBits } = LENGTHS[run];
      // One more bit, 0, is distance 1.
      runs[run] = entry(codes[symbol] + (extra << lengths[symbol]), lengths[symbol] + extraBits + 1);
    }
    this.putCodes(lengths, last);
    pair();
    emit(length);
    for (let at = tail; at < end; at++) put(bytes[memory[at]]);
    put(entry(codes[END], lengths[END]));
  }

  /** The header of a block: the length of each symbol's code, itself encoded (RFC 1951, 3.2.7). */
  private putCodes(lengths: Uint8Array, last: boolean): void {
    const { put } = this.kernel;
    const symbols = lengths.findLastIndex((length) => length > 0) + 1;
    const packed = packLengths([...lengths.subarray(0, symbols), DISTANCE_LENGTH]);
    const counts = new Uint32Array(PACKED_ORDER.length);
    for (const { symbol } of packed) counts[symbol]++;
    const packedLengths = codeLengths(counts, 7);
    const packedCodes = canonicalCodes(packedLengths);
    const used = PACKED_ORDER.findLastIndex((symbol) => packedLengths[symbol] > 0) + 1;

    put(entry(last ? 1 : 0, 1));
    put(entry(2, 2));
    put(entry(symbols - 257, 5));
    put(entry(0, 5));
    put(entry(used - 4, 4));
    for (const symbol of PACKED_ORDER.slice(0, used)) put(entry(packedLengths[symbol], 3));
    for (const { symbol, extra, extraBits } of packed) {
      put(entry(packedCodes[symbol], packedLengths[symbol]));
      if (extraBits > 0) put(entry(extra, extraBits));
    }
  }
}

/** Length of the only distance code, that of 1. */
const DISTANCE_LENGTH = 1;

/** The order in which the lengths of the code length codes are sent. */
const PACKED_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** Run-length encodes code lengths: 16 repeats the last one 3 to 6 times, 17 and 18 are 3 to 10 and 11 to 138 zeros. */
function packLengths(lengths: number[]): { symbol: number; extra: number; extraBits: number }[] {
  const packed = [];
  for (let at = 0, previous = -1; at < lengths.length; ) {
    const length = lengths[at];
    let run = 1;
    while (run < 138 && lengths[at + run] === length) run++;
    if (length === 0 && run >= 11) {
      packed.push({ symbol: 18, extra: run - 11, extraBits: 7 });
    } else if (length === 0 && run >= 3) {
      packed.push({ symbol: 17, extra: run - 3, extraBits: 3 });
    } else if (length === previous && run >= 3) {
      run = Math.min(run, 6);
      packed.push({ symbol: 16, extra: run - 3, extraBits: 2 });
    } else {
      run = 1;
      packed.push({ symbol: length, extra: 0, extraBits: 0 });
    }
    previous = length;
    at += run;
  }
  return packed;
}

const kernel = loadWasmKernel<Kernel>(new URL('./deflate.wasm', import.meta.url));
/** One for each thread. */
const encoder = kernel && new Encoder(kernel, createAdler32(kernel));
