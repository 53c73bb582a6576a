/** Places look alike from every side: the eight turns and mirrorings of a square patch are all true samples. */

/** Copies one patch of `size` x `size` pixels, mirrored (bit 2) and turned by quarter turns (bits 0-1) as `symmetry` 0-7 says. */
export function applyD4(
  from: Float32Array,
  to: Float32Array,
  size: number,
  bands: number,
  symmetry: number,
): void {
  const last = size - 1;
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      let y = row;
      let x = symmetry & 4 ? last - column : column;
      for (let turn = symmetry & 3; turn > 0; turn--) [y, x] = [x, last - y];
      const source = (y * size + x) * bands;
      const target = (row * size + column) * bands;
      for (let b = 0; b < bands; b++) to[target + b] = from[source + b];
    }
  }
}
