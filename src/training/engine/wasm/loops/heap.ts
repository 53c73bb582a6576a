/** The memory of the WASM backend, and the WebAssembly of ours that works on it. */
import { readFileSync } from 'node:fs';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import { engineMemory } from '../../../errors.js';

/** Functions that tools/wat generates. Addresses and distances are in bytes. */
export type Exports = Record<
  | 'leakyRelu'
  | 'leakyReluGradient'
  | 'channelSums'
  | 'columnSums'
  | 'batchNormGradient'
  | 'copyRuns'
  | 'addRuns'
  | 'copyStrided'
  | 'adam'
  | 'multiplyPanel'
  | 'multiplyPoints'
  | `${'max' | 'avg'}Pool${'' | 'Gradient'}`
  | `${'input' | 'filter' | 'gradient'}Points${4 | 6}`
  | `${'output' | 'filter'}Pixels${4 | 6}`,
  (...numbers: number[]) => void
>;

/** What the backend has of its module. */
interface Module {
  asm: { memory: WebAssembly.Memory };
  _malloc(bytes: number): number;
  _free(address: number): void;
}

const [plain, relaxed] = ['loops.wasm', 'loops-relaxed.wasm'];

/**
 * Multiply-add that rounds once is part of relaxed SIMD, which Node has from version 22 on. Results differ from those of the plain kernels in the
 * last bits, so the version of the engine names it.
 */
export const hasRelaxedSimd = WebAssembly.validate(readFileSync(new URL(relaxed, import.meta.url)));
const kernelFile = hasRelaxedSimd ? relaxed : plain;

/** Of a float32. */
export const BYTES = 4;
/** Small arrays, such as values of channels, must need no growth, which would part the views of a caller from the heap. */
const SMALL = 2 ** 20;
const ALIGNED = 16;

export const upTo = (step: number, n: number) => Math.ceil(n / step) * step;

export class Heap {
  readonly run: Exports;
  private readonly module: Module;
  private readonly forArrays: Scratch;
  private readonly forProducts: Scratch;

  /** Of the started backend. */
  constructor(backend: BackendWasm) {
    this.module = backend.wasm as unknown as Module;
    const imports = { tfjs: { memory: this.module.asm.memory } };
    const code = new WebAssembly.Module(readFileSync(new URL(kernelFile, import.meta.url)));
    this.run = new WebAssembly.Instance(code, imports).exports as Exports;
    this.forArrays = new Scratch(this.module);
    this.forProducts = new Scratch(this.module);
    this.forArrays.take(SMALL);
  }

  floats(address: number, length: number): Float32Array {
    return new Float32Array(this.module.asm.memory.buffer, address, length);
  }

  /** Calls `use` with the arrays' addresses. Arrays that lie elsewhere are on the heap meanwhile. */
  with(arrays: readonly Float32Array[], use: (...addresses: number[]) => void): void {
    const places = arrays.map((array) => ({
      array,
      address: array.byteOffset,
      length: array.length,
      isAway: array.buffer !== this.module.asm.memory.buffer,
    }));
    const away = places.filter(({ isAway }) => isAway);
    let next = this.forArrays.take(away.reduce((sum, { length }) => sum + upTo(ALIGNED, length * BYTES), 0));
    for (const place of away) {
      place.address = next;
      next += upTo(ALIGNED, place.length * BYTES);
      this.floats(place.address, place.length).set(place.array);
    }
    use(...places.map(({ address }) => address));
    for (const { array, address, length } of away) array.set(this.floats(address, length));
  }

  /** Addresses of memory for so many floats each, until the next call. Views of the heap may be no good afterwards. */
  regions(...lengths: number[]): number[] {
    let next = this.forProducts.take(lengths.reduce((sum, length) => sum + upTo(ALIGNED, length * BYTES), 0));
    return lengths.map((length) => {
      const address = next;
      next += upTo(ALIGNED, length * BYTES);
      return address;
    });
  }
}

/** Bytes that an address of WebAssembly can reach. malloc takes the size modulo this. */
const ADDRESSABLE = 2 ** 32;

/** Invariant: `size` bytes from `address` on are ours. They grow and are used again. */
class Scratch {
  private address = 0;
  private size = 0;

  constructor(private readonly module: Module) {}

  /** Throws TW_TRAIN_ENGINE_MEMORY; what was held before is freed then. */
  take(bytes: number): number {
    if (bytes > this.size) {
      this.module._free(this.address);
      this.size = 0;
      this.address = bytes < ADDRESSABLE ? this.module._malloc(bytes) >>> 0 : 0;
      if (this.address === 0) throw engineMemory(bytes);
      this.size = bytes;
    }
    return this.address;
  }
}
