/**
 * Reads zlib streams (RFC 1950, 1951) of blocks of pixels. inflate.wat (WebAssembly SIMD) decodes up to three bytes at a time,
 * which suits pixels whose differences hardly repeat. zlib decodes if SIMD is missing, small blocks, whose tables cost more
 * than they save, and large blocks, whose memory a thread should not keep.
 */
import { constants, inflateSync } from 'node:zlib';
import { loadWasmKernel } from '../../utils/wasm-loader.js';
import { type Adler32, createAdler32 } from './huffman.js';

/** Writes the stream, or its start, to memory. */
type ReadStream = (into: Uint8Array) => void;

/**
 * Decompresses a stream of `length` bytes. The result is valid until the next stream is read. Throws an Error if the stream is
 * damaged or holds more than `limit` bytes.
 */
export function inflate(length: number, limit: number, read: ReadStream): Uint8Array {
  const room = decoder?.reserve(length, limit);
  if (!decoder || !room) {
    const stored = Buffer.allocUnsafeSlow(length);
    read(stored);
    return inflateByZlib(stored, limit);
  }
  read(room);
  return limit < MIN_WASM_BYTES ? inflateByZlib(room, limit) : decoder.decode(length, limit);
}

/**
 * The first `wanted` bytes of a stream whose first `length` bytes are available, valid until the next stream is read;
 * undefined if these hold fewer. Throws an Error if they are damaged. `isWhole`: the stream is complete and holds no more bytes. Only then
 * its checksum is verified.
 */
export function inflatePrefix(
  length: number,
  wanted: number,
  read: ReadStream,
  isWhole = false,
): Uint8Array | undefined {
  const room = decoder?.reserve(length, wanted);
  if (decoder && room) {
    read(room);
    if (!isWhole) return decoder.decodePrefix(length, wanted);
    const bytes = decoder.decode(length, wanted);
    return bytes.length < wanted ? undefined : bytes;
  }
  const stored = Buffer.allocUnsafeSlow(length);
  read(stored);
  const finishFlush = isWhole ? constants.Z_FINISH : constants.Z_SYNC_FLUSH;
  const bytes = inflateSync(stored, { finishFlush, chunkSize: chunkFor(wanted) });
  return bytes.length < wanted ? undefined : aligned(bytes.subarray(0, wanted));
}

function inflateByZlib(stored: Uint8Array, limit: number): Uint8Array {
  return aligned(inflateSync(stored, { maxOutputLength: limit, chunkSize: chunkFor(limit) }));
}

/** One spare byte lets zlib see the end of the data without a second chunk. */
const chunkFor = (bytes: number) => Math.max(64, bytes + 1);

const aligned = (bytes: Uint8Array) => (bytes.byteOffset % 8 === 0 ? bytes : new Uint8Array(bytes));

/** Exports of huffman-tables.wat, which describes them. */
interface HuffmanTables {
  memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  /** Address of the free memory. */
  free: { readonly value: number };
}

/** Exports of inflate.wat, which describes them. */
interface Inflate {
  /** Address after the last byte read. */
  in: { readonly value: number };
  /** Address after the last byte written. */
  out: { readonly value: number };
  inflate(from: number, end: number, out: number, stop: number): number;
}

/** The exports of all modules, which share one memory. */
type Kernel = HuffmanTables & Inflate & { adler: Adler32 };

const PAGE = 65_536;
/** Output size below which zlib is as fast, bytes. */
const MIN_WASM_BYTES = 2 ** 14;
/** Limit of input plus output, bytes; the memory of larger blocks is not kept. */
const MAX_WASM_BYTES = 2 ** 24;
/** The kernel may read this far beyond the input, and write this far beyond the output. */
const PADDING_BYTES = 1024;

const STOPPED = 1;
const TRUNCATED = 2;
/** Results of the kernel, from `TRUNCATED` on. */
const FAULTS = [
  'its data end early',
  'a block has an unknown type',
  'its code lengths are invalid',
  'a stored block has two lengths',
  'it has bits that are not a code',
  'it repeats bytes before its start',
];

/** Header and checksum of a zlib stream. */
const ZLIB_HEADER_BYTES = 2;
const ZLIB_TRAILER_BYTES = 4;

/**
 * The kernel with the last stream and its output. Its memory grows to the largest size that was needed, at most
 * `MAX_WASM_BYTES` and the padding.
 */
class Decoder {
  private readonly input: number;
  private memory: Uint8Array;
  /** Address of the output. */
  private output = 0;

  constructor(private readonly kernel: Kernel) {
    this.input = kernel.free.value;
    this.memory = new Uint8Array(kernel.memory.buffer);
  }

  /** Memory for a stream that decompresses to at most `limit` bytes; undefined if that is too much. */
  reserve(length: number, limit: number): Uint8Array | undefined {
    if (length + limit > MAX_WASM_BYTES) return undefined;
    this.output = Math.ceil((this.input + length + PADDING_BYTES) / 16) * 16;
    const lacking = this.output + limit + PADDING_BYTES - this.memory.length;
    if (lacking > 0) {
      this.kernel.memory.grow(Math.ceil(lacking / PAGE));
      this.memory = new Uint8Array(this.kernel.memory.buffer);
    }
    return this.memory.subarray(this.input, this.input + length);
  }

  decode(length: number, limit: number): Uint8Array {
    const found = this.run(length, limit + 1);
    if (found >= TRUNCATED) throw new Error(FAULTS[found - TRUNCATED]);
    const size = this.kernel.out.value - this.output;
    if (found === STOPPED || size > limit) throw new Error(`it holds more than ${limit} bytes`);
    const at = this.kernel.in.value;
    if (at + ZLIB_TRAILER_BYTES > this.input + length) throw new Error(FAULTS[0]);
    const view = new DataView(this.memory.buffer);
    if (view.getUint32(at) !== this.kernel.adler(1, this.output, size) >>> 0)
      throw new Error('its checksum is wrong');
    return this.memory.subarray(this.output, this.output + size);
  }

  decodePrefix(length: number, wanted: number): Uint8Array | undefined {
    const found = this.run(length, wanted);
    if (found > TRUNCATED) throw new Error(FAULTS[found - TRUNCATED]);
    if (found === TRUNCATED || this.kernel.out.value - this.output < wanted) return undefined;
    return this.memory.subarray(this.output, this.output + wanted);
  }

  private run(length: number, stop: number): number {
    const { input, output, memory } = this;
    if (length < ZLIB_HEADER_BYTES) return TRUNCATED;
    checkZlibHeader(memory[input], memory[input + 1]);
    return this.kernel.inflate(input + ZLIB_HEADER_BYTES, input + length, output, output + stop);
  }
}

const DEFLATE_METHOD = 8;
/** Size: 2 ** 15 bytes. */
const LARGEST_WINDOW = 7;
const DICTIONARY_FLAG = 32;

/** Throws unless these two bytes are the header of a DEFLATE stream (RFC 1950, 2.2). */
function checkZlibHeader(first: number, second: number): void {
  const isDeflate = (first & 15) === DEFLATE_METHOD && first >> 4 <= LARGEST_WINDOW;
  if (!isDeflate || (first * 256 + second) % 31 !== 0) throw new Error('it does not begin as a zlib stream');
  if (second & DICTIONARY_FLAG) throw new Error('it needs a dictionary');
}

function createDecoder(codes: HuffmanTables | undefined): Decoder | undefined {
  if (!codes) return undefined;
  const inflate = loadWasmKernel<Inflate>(new URL('./inflate.wasm', import.meta.url), { codes });
  return inflate && new Decoder({ ...codes, ...inflate, adler: createAdler32(codes) });
}

/** One for each thread. */
const decoder = createDecoder(
  loadWasmKernel<HuffmanTables>(new URL('./huffman-tables.wasm', import.meta.url)),
);
