/** Loads kernels in WebAssembly SIMD, which the build assembles from text. */
import { readFileSync } from 'node:fs';

/** The part of WebAssembly that is used here. Neither Node's types nor those of the language declare it. */
declare const WebAssembly: {
  validate(code: Uint8Array): boolean;
  Module: new (code: Uint8Array) => object;
  Instance: new (module: object, imports: object) => { exports: unknown };
};

/** A function that returns an empty 128-bit vector. It validates only if SIMD is supported. */
const SIMD_PROBE = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 22, 1, 20, 0, 253, 12, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11,
]);

/** The exports of a `.wasm` file. Its memory belongs to this thread or comes with the imports. Undefined without SIMD. */
export function loadWasmKernel<Exports>(file: URL, imports: object = {}): Exports | undefined {
  if (!WebAssembly.validate(SIMD_PROBE)) return undefined;
  const code = readFileSync(file);
  return new WebAssembly.Instance(new WebAssembly.Module(code), imports).exports as Exports;
}
