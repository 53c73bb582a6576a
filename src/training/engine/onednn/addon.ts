/** The addon over oneDNN, which `native/build.mjs` builds where it can. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Loops } from '../wasm/loops.js';

/** What an operation computes from the two others of: input, filter, output. */
export const FORWARD = 0;
export const TO_INPUT = 1;
export const TO_FILTER = 2;

/** All arrays have exactly the sizes that follow from the geometry; else it throws. They may be views of a WASM heap. */
export interface OneDnn extends Loops {
  /** Of oneDNN. */
  version: string;
  /**
   * A convolution, [N,H,W,C] with a filter [h,w,C,O], or one of its gradients. The geometry: batch, height, width, channels in
   * and out, filter height and width, strides, dilations, padding at the top, left, bottom and right.
   */
  convolve(
    direction: number,
    geometry: Int32Array,
    x: Float32Array,
    filter: Float32Array,
    y: Float32Array,
    bias: Float32Array | null,
  ): void;
  /** c [m,n] = a [m,k] b [k,n] of the shape m, n, k, whether a lies transposed, whether b does. */
  multiply(shape: Int32Array, a: Float32Array, b: Float32Array, c: Float32Array): void;
}

const ADDON = fileURLToPath(new URL('../../../../../native/build/onednn.node', import.meta.url));

/** Throws where it was not built, or does not load. */
export function loadOneDnn(): OneDnn {
  if (!existsSync(ADDON))
    throw new Error('its addon is not built; install g++ and libdnnl-dev, then run "npm run onednn"');
  return createRequire(import.meta.url)(ADDON) as OneDnn;
}
