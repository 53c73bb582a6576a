/** Adler-32 (RFC 1950), the checksum of a zlib stream, by adler32.wat over the memory of another kernel. */
import { loadWasmKernel } from '../../pixels/index.js';

/** The checksum of `length` bytes at `from`, continued from `sums` (1 at the start of a stream). A 32-bit integer. */
export type Adler32 = (sums: number, from: number, length: number) => number;

export function createAdler32({ memory }: { memory: object }): Adler32 {
  const kernel = loadWasmKernel<{ adler: Adler32 }>(new URL('./adler32.wasm', import.meta.url), {
    kernel: { memory },
  });
  if (!kernel) throw new Error('WebAssembly SIMD is not supported');
  return kernel.adler;
}
