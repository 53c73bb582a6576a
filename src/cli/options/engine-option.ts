import type { Option } from 'commander';
import { createOption } from './option-groups.js';

/** Of commands that load a training engine. The names are those of src/training, which is not loaded for help. */
export function engineOption(): Option {
  return createOption('--engine <name>', 'use this engine or fail').choices([
    'tfjs-node-gpu',
    'tfjs-node',
    'wasm-onednn',
    'wasm',
  ]);
}
