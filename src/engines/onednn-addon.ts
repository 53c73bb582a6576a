/** The oneDNN addon, which `native/build.mjs` builds if possible. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { ComputePrimitives } from './compute-primitives/index.js';

/** Pooling operations, which the addon lacks. */
export type PoolingOperation = `${'max' | 'avg'}Pool${'' | 'Gradient'}`;

/** Primitives in C++, with convolutions and products by oneDNN. */
export interface OneDnnAddon extends Omit<ComputePrimitives, PoolingOperation> {
  /** Version of oneDNN. */
  version: string;
}

const ADDON = fileURLToPath(new URL('../../../native/build/onednn.node', import.meta.url));

/** Throws if the addon was not built or cannot be loaded. */
export function loadOneDnn(): OneDnnAddon {
  if (!existsSync(ADDON))
    throw new Error('its addon is not built; install g++ and libdnnl-dev, then run "npm run onednn"');
  return createRequire(import.meta.url)(ADDON) as OneDnnAddon;
}
