/** Loads one training engine into the current process. `selectEngine` decides which one. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import { messageOf } from '../errors.js';
import { hasMultiplyAdd } from './compute-primitives/heap.js';
import type { ComputePrimitives } from './compute-primitives/primitives.js';
import { wasmPrimitives } from './compute-primitives/wasm.js';
import { completeNativeConvolutions } from './convolutions.js';
import { engineUnavailable } from './errors.js';
import type { Tf } from './tfjs.js';
import { registerTrainingKernels } from './wasm-kernels/register.js';

/** Pooling operations, which the addon lacks. */
export type PoolingOperation = `${'max' | 'avg'}Pool${'' | 'Gradient'}`;

/** Primitives in C++, with convolutions and products by oneDNN. */
export interface OneDnnAddon extends Omit<ComputePrimitives, PoolingOperation> {
  /** Version of oneDNN. */
  version: string;
}

/** The oneDNN addon, which `native/build.mjs` builds if possible. */
const ADDON_PATH = fileURLToPath(new URL('../../../native/build/onednn.node', import.meta.url));

/** Throws if the addon was not built or cannot be loaded. */
export function loadOneDnn(): OneDnnAddon {
  if (!existsSync(ADDON_PATH))
    throw new Error('its addon is not built; install g++ and libdnnl-dev, then run "npm run onednn"');
  return createRequire(import.meta.url)(ADDON_PATH) as OneDnnAddon;
}

/** Version of our own convolution kernels. Results differ between versions in the last bits. */
const KERNELS_VERSION = 2;

/** Fastest first. */
export const ENGINE_NAMES = ['tfjs-node-gpu', 'wasm-onednn', 'wasm', 'tfjs-node'] as const;
export type EngineName = (typeof ENGINE_NAMES)[number];

export interface LoadedEngine {
  name: EngineName;
  /** Version of the package that computes. */
  version: string;
  tf: Tf;
}

const requirePackage = createRequire(import.meta.url);
let loadedEngine: { name: EngineName; engine: Promise<LoadedEngine> } | undefined;

/**
 * Loads an engine, once per process: two native TensorFlow libraries in one process break each other. `packagesFrom`: a file beside whose
 * `node_modules` the tfjs-node packages are searched; default: this installation. Throws TW_TRAIN_ENGINE.
 */
export function loadEngine(
  name: EngineName,
  packagesFrom = fileURLToPath(import.meta.url),
): Promise<LoadedEngine> {
  if (loadedEngine !== undefined && loadedEngine.name !== name) {
    return Promise.reject(
      engineUnavailable(
        name,
        `this process already runs ${loadedEngine.name}, and a process can run only one engine`,
      ),
    );
  }
  loadedEngine ??= { name, engine: isNative(name) ? loadNative(name, packagesFrom) : loadWasm(name) };
  return loadedEngine.engine;
}

type NativeName = 'tfjs-node-gpu' | 'tfjs-node';

function isNative(name: EngineName): name is NativeName {
  return name.startsWith('tfjs-node');
}

async function loadWasm(name: Exclude<EngineName, NativeName>): Promise<LoadedEngine> {
  try {
    const dnn = name === 'wasm-onednn' ? loadOneDnn() : undefined;
    const tf: Tf = {
      ...requirePackage('@tensorflow/tfjs-core'),
      ...requirePackage('@tensorflow/tfjs-layers'),
    };
    const wasm: typeof import('@tensorflow/tfjs-backend-wasm') = requirePackage(
      '@tensorflow/tfjs-backend-wasm',
    );
    wasm.setWasmPaths(`${dirname(requirePackage.resolve('@tensorflow/tfjs-backend-wasm'))}/`);
    wasm.setThreadsCount(1);
    // The threaded build also runs one thread under Node, but has a set-up cost.
    tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
    if (!(await tf.env().getAsync('WASM_HAS_SIMD_SUPPORT')))
      throw new Error('this processor has no WASM SIMD');
    if (!(await tf.setBackend('wasm'))) throw new Error('the WASM backend did not start');
    const heap = wasmPrimitives(tf.backend() as BackendWasm);
    const { maxPool, maxPoolGradient, avgPool, avgPoolGradient } = heap;
    registerTrainingKernels(tf, { ...heap, ...dnn, maxPool, maxPoolGradient, avgPool, avgPoolGradient });
    const own = `own.${KERNELS_VERSION}${hasMultiplyAdd ? '.fma' : ''}`;
    const version = `${wasm.version_wasm}${dnn ? ` on oneDNN ${dnn.version}` : `+${own}`}`;
    return { name, version, tf };
  } catch (error) {
    throw engineUnavailable.because(error, name, messageOf(error));
  }
}

async function loadNative(name: NativeName, packagesFrom: string): Promise<LoadedEngine> {
  try {
    const tf: Tf & { version: Record<string, string> } = createRequire(packagesFrom)(`@tensorflow/${name}`);
    await tf.ready();
    if (tf.getBackend() !== 'tensorflow') {
      throw new Error(
        `its backend is ${tf.getBackend()} instead of TensorFlow, and plain JavaScript is not used for training`,
      );
    }
    if (name === 'tfjs-node-gpu' && !usesGpu(tf)) throw new Error('TensorFlow found no GPU');
    completeNativeConvolutions(tf);
    return { name, version: tf.version['tfjs-node'] ?? tf.version_core, tf };
  } catch (error) {
    throw engineUnavailable.because(error, name, messageOf(error));
  }
}

function usesGpu(tf: Tf): boolean {
  return (tf.backend() as { isUsingGpuDevice?: boolean }).isUsingGpuDevice === true;
}
