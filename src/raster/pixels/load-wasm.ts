/** Loads the kernels in WebAssembly text that the build assembles, where there is WebAssembly SIMD. */
import { readFileSync } from 'node:fs';

/** As much of it as is used: neither Node's types nor those of the language have it. */
declare const WebAssembly: {
  validate(code: Uint8Array): boolean;
  Module: new (code: Uint8Array) => object;
  Instance: new (module: object, imports: object) => { exports: unknown };
};

/** A function that returns an empty 128-bit vector: valid only where there is SIMD. */
const SIMD_PROBE = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 22, 1, 20, 0, 253, 12, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11,
]);

/** The exports of a `.wasm` file, with a memory of this thread's own or one among the imports; undefined without SIMD. */
export function loadWasmKernel<Exports>(file: URL, imports: object = {}): Exports | undefined {
  if (!WebAssembly.validate(SIMD_PROBE)) return undefined;
  const code = readFileSync(file);
  return new WebAssembly.Instance(new WebAssembly.Module(code), imports).exports as Exports;
}
