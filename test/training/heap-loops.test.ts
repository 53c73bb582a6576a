import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import { loadEngine } from '../../src/training/engine/load-engine.js';
import { heapLoops } from '../../src/training/engine/wasm/heap-loops.js';
import { loopsContract } from './loops-contract.js';

const { tf } = await loadEngine('wasm');
const loops = heapLoops(tf.backend() as BackendWasm);
loopsContract('the loops on the heap of tfjs', () => loops);
