/** Places look alike from every side: the eight turns and mirrorings of a square patch are all true samples. */
import { PATCH_BANDS, PATCH_SIZE } from './patches.js';

/** Copies one patch, mirrored (bit 2) and turned by quarter turns (bits 0-1) as `symmetry` 0-7 says. */
export function copyTurned(from: Float32Array, to: Float32Array, symmetry: number): void {
  const last = PATCH_SIZE - 1;
  for (let row = 0; row < PATCH_SIZE; row++) {
    for (let column = 0; column < PATCH_SIZE; column++) {
      let y = row;
      let x = symmetry & 4 ? last - column : column;
      for (let turn = symmetry & 3; turn > 0; turn--) [y, x] = [x, last - y];
      const source = (y * PATCH_SIZE + x) * PATCH_BANDS;
      const target = (row * PATCH_SIZE + column) * PATCH_BANDS;
      for (let b = 0; b < PATCH_BANDS; b++) to[target + b] = from[source + b];
    }
  }
}
