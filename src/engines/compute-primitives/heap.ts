/** The memory of the WASM backend, and our own WebAssembly on it. */
import { readFileSync } from 'node:fs';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import { engineMemory } from '../errors.js';

/** Functions that tools/wat generates. Addresses and distances are in bytes. */
export type Exports = Record<
  | 'leakyRelu'
  | 'leakyReluGradient'
  | 'channelSums'
  | 'scaleChannels'
  | 'columnSums'
  | 'batchNormGradient'
  | 'copyRuns'
  | 'addRuns'
  | 'copyStrided'
  | 'adam'
  | 'multiplyPanel'
  | 'multiplyPoints'
  | `${'max' | 'avg'}Pool${'' | 'Gradient' | 'GradientDisjoint'}`
  | `${'input' | 'filter' | 'gradient'}Points${4 | 6}`
  | `${'output' | 'filter'}Pixels${4 | 6}`,
  (...numbers: number[]) => void
>;

/** Members of the module of the backend. */
interface Module {
  asm: { memory: WebAssembly.Memory };
  _malloc(bytes: number): number;
  _free(address: number): void;
}

const codeOf = (name: string) => readFileSync(new URL(name, import.meta.url));

/** True if relaxed SIMD (Node 22 and later) multiplies and adds with one rounding, which depends on the processor. */
function roundsOnce(code: ReturnType<typeof codeOf>): boolean {
  if (!WebAssembly.validate(code)) return false;
  const memory = new WebAssembly.Memory({ initial: 1 });
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code), { tfjs: { memory } });
  const floats = new Float32Array(memory.buffer, 0, 64);
  const [a, b, c] = [0, 8, 16];
  // (1 + e) (1 - e) - 1 is -e² with one rounding, and 0 with two.
  const e = 2 ** -13;
  floats
    .fill(1 + e, a, b)
    .fill(1 - e, b, c)
    .fill(-1, c);
  const parameters = [
    4,
    1,
    1,
    a * FLOAT32_BYTES,
    0,
    0,
    0,
    0,
    b * FLOAT32_BYTES,
    0,
    c * FLOAT32_BYTES,
    8 * FLOAT32_BYTES,
    0,
  ];
  (exports as Exports).multiplyPanel(...parameters);
  return floats[c] === -(e ** 2);
}

export const FLOAT32_BYTES = 4;

const relaxed = codeOf('loops-relaxed.wasm');
/** Results differ in the last bits from those with two roundings, so the version of the engine includes it. */
export const hasMultiplyAdd = roundsOnce(relaxed);
const code = hasMultiplyAdd ? relaxed : codeOf('loops.wasm');

/** Memory for arrays of channel values, allocated in advance: growth of the heap detaches the views of callers. */
const PREALLOCATED_FLOATS = 2 ** 18;
const ALIGNMENT_BYTES = 16;

export const roundUpTo = (step: number, n: number) => Math.ceil(n / step) * step;

export class WasmHeap {
  readonly run: Exports;
  private readonly module: Module;
  private readonly forArrays: ScratchRegion;
  private readonly forProducts: ScratchRegion;

  /** The backend must have been started. */
  constructor(backend: BackendWasm) {
    this.module = backend.wasm as unknown as Module;
    const imports = { tfjs: { memory: this.module.asm.memory } };
    this.run = new WebAssembly.Instance(new WebAssembly.Module(code), imports).exports as Exports;
    refuseFailedAllocations(this.module);
    this.forArrays = new ScratchRegion(this.module);
    this.forProducts = new ScratchRegion(this.module);
    this.forArrays.reserve([PREALLOCATED_FLOATS]);
  }

  float32View(address: number, length: number): Float32Array {
    return new Float32Array(this.module.asm.memory.buffer, address, length);
  }

  /** Calls `use` with the addresses of the arrays. Arrays outside of the heap are copied to the heap and back. */
  withAddresses(arrays: readonly Float32Array[], use: (...addresses: number[]) => void): void {
    // Before the allocation, which may detach views of the heap.
    const addresses = arrays.map(({ byteOffset }) => byteOffset);
    const { buffer } = this.module.asm.memory;
    const outside = [...arrays.keys()].filter((i) => arrays[i].buffer !== buffer);
    const copies = this.forArrays.reserve(outside.map((i) => arrays[i].length));
    outside.forEach((i, n) => {
      addresses[i] = copies[n];
      this.float32View(copies[n], arrays[i].length).set(arrays[i]);
    });
    use(...addresses);
    for (const i of outside) arrays[i].set(this.float32View(addresses[i], arrays[i].length));
  }

  /** Returns addresses of memory for these numbers of floats, valid until the next call. Views of the heap may be detached afterwards. */
  scratch(...lengths: number[]): number[] {
    return this.forProducts.reserve(lengths);
  }
}

/** Size of the address space of WebAssembly. malloc truncates larger sizes to 32 bits. */
const MAX_ADDRESSABLE_BYTES = 2 ** 32;

/** Throws for failed allocations, for which malloc returns 0: tfjs would write to address 0. */
function refuseFailedAllocations(module: Module): void {
  // Emscripten reslots its functions at their first call, and would replace this one.
  module._free(module._malloc(1));
  const malloc = module._malloc;
  module._malloc = (bytes) => {
    const address = bytes < MAX_ADDRESSABLE_BYTES ? malloc(bytes) : 0;
    if (address === 0) throw engineMemory(bytes);
    return address;
  };
}

/** A reusable allocation that grows. Invariant: it owns `size` bytes from `address` on. */
class ScratchRegion {
  private address = 0;
  private size = 0;

  constructor(private readonly module: Module) {}

  /** Returns addresses for these numbers of floats. Throws TW_TRAIN_ENGINE_MEMORY; the allocation is then empty. */
  reserve(lengths: number[]): number[] {
    const sizes = lengths.map((length) => roundUpTo(ALIGNMENT_BYTES, length * FLOAT32_BYTES));
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    if (bytes > this.size) {
      this.module._free(this.address);
      this.address = 0;
      this.size = 0;
      this.address = this.module._malloc(bytes) >>> 0;
      this.size = bytes;
    }
    let next = this.address;
    return sizes.map((size) => {
      next += size;
      return next - size;
    });
  }
}
