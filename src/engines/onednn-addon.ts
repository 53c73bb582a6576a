/** The addon over oneDNN, which `native/build.mjs` builds where it can. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { ComputePrimitives } from './compute-primitives/compute-primitives.js';

/** Loops of pooling, which are those on the heap. */
export type PoolingOperation = `${'max' | 'avg'}Pool${'' | 'Gradient'}`;

/** Loops in C++, the convolutions and products by oneDNN. */
export interface OneDnnAddon extends Omit<ComputePrimitives, PoolingOperation> {
  /** Of oneDNN. */
  version: string;
}

const ADDON = fileURLToPath(new URL('../../../native/build/onednn.node', import.meta.url));

/** Throws where it was not built, or does not load. */
export function loadOneDnn(): OneDnnAddon {
  if (!existsSync(ADDON))
    throw new Error('its addon is not built; install g++ and libdnnl-dev, then run "npm run onednn"');
  return createRequire(import.meta.url)(ADDON) as OneDnnAddon;
}
