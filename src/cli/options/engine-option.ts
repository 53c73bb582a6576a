import type { Option } from 'commander';
import { createOption } from './option-groups.js';

/** The option of commands that load a training engine. Lists the names itself, so that help does not load src/engines. */
export function engineOption(): Option {
  return createOption('--engine <name>', 'use this engine or fail').choices([
    'tfjs-node-gpu',
    'wasm-onednn',
    'wasm',
    'tfjs-node',
  ]);
}
