/** Conversion of IEEE 754 binary16 numbers as bits: 1 sign bit, 5 exponent bits, 10 fraction bits. */

/** Rounds to nearest, ties to even; numbers from 65,520 on become infinite. */
export function toFloat16(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return Uint16Array.from(bits, float16Bits);
}

export function fromFloat16(
  halves: Uint16Array,
  into: Float32Array = new Float32Array(halves.length),
): Float32Array {
  for (let i = 0; i < halves.length; i++) into[i] = FLOAT16_VALUES[halves[i]];
  return into;
}

function float16Bits(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const rest = bits & 0x7fff_ffff;
  // NaN stays NaN.
  if (rest > 0x7f80_0000) return sign | 0x7e00;
  // Numbers from 65,520 on round to infinity.
  if (rest >= 0x477f_f000) return sign | 0x7c00;
  // Subnormal numbers are multiples of 2^-24.
  if (rest < 0x3880_0000) return sign | toEven(floatOf(rest) * 2 ** 24);
  const kept = rest - 0x3800_0000;
  const odd = (kept >>> 13) & 1;
  return sign | ((kept + 0xfff + odd) >>> 13);
}

function toEven(value: number): number {
  const down = Math.floor(value);
  const over = value - down;
  return over > 0.5 || (over === 0.5 && down % 2 === 1) ? down + 1 : down;
}

const scratch = new DataView(new ArrayBuffer(4));

function floatOf(bits: number): number {
  scratch.setUint32(0, bits);
  return scratch.getFloat32(0);
}

/** The values of all float16 bit patterns. */
const FLOAT16_VALUES = Float32Array.from({ length: 2 ** 16 }, (_, half) => {
  const sign = half >>> 15 ? -1 : 1;
  const exponent = (half >>> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
});
