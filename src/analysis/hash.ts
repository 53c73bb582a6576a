/** The finalizer of MurmurHash3 (Appleby 2011), which mixes all bits of a number of 32. The result may be negative. */
export function mixedBits(number: number): number {
  let bits = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return bits ^ (bits >>> 16);
}
