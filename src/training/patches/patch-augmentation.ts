/** Augmentation by symmetry: the eight rotations and reflections of a square patch are all valid samples. */

/** Copies one patch of `size` x `size` pixels, mirrored (bit 2 of `symmetry`) and rotated by quarter turns (bits 0-1). */
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
