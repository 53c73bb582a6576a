/**
 * Random numbers that depend on a place and a seed alone, so that any window of the synthetic world can be made at any
 * pixel size and is the same on every machine: 32-bit integer hashing and the operations IEEE 754 fixes, no Math.sin.
 */

/** Avalanche hash of two integers and a seed (the finaliser of MurmurHash3), as an unsigned 32-bit integer. */
export function hash(x: number, y: number, seed: number): number {
  let h = Math.imul(x | 0, 0x27d4eb2d) ^ Math.imul(y | 0, 0x165667b1) ^ Math.imul(seed | 0, 0x9e3779b1);
  h = Math.imul(h ^ (h >>> 15), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Uniform in [0, 1). */
export function uniform(x: number, y: number, seed: number): number {
  return hash(x, y, seed) / 4294967296;
}

/** Nearly normal, mean 0, standard deviation 1, within ±3.5: the sum of the four bytes of a hash. */
export function gaussian(x: number, y: number, seed: number): number {
  const h = hash(x, y, seed);
  return ((h & 255) + ((h >>> 8) & 255) + ((h >>> 16) & 255) + (h >>> 24) - 510) / 147.8;
}

/** The same with finer steps, within ±6 and nearer to normal: from twelve bytes of three hashes. */
export function smoothGaussian(x: number, y: number, seed: number): number {
  const sum = gaussian(x, y, seed) + gaussian(x, y, seed + 0x1000193) + gaussian(x, y, seed + 0x2000386);
  return sum / Math.sqrt(3);
}
