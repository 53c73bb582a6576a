/** Combines the CRC-32 of two pieces without their bytes (Mark Adler's crc32_combine of zlib). */

/** The polynomial of CRC-32, with reversed bits. */
const POLYNOMIAL = 0xedb88320;

/** `first` and `second` are the CRCs of the pieces; the second piece has `length` bytes. */
export function combineCrc32(first: number, second: number, length: number): number {
  // Append as many zero bytes to the first piece as the second has: x^(8 * length) modulo the polynomial.
  return (multiply(powerOfX(8 * length), first) ^ second) >>> 0;
}

/** Product of two polynomials over GF(2) modulo that of CRC-32; the highest bit is x^0. */
function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 0x80000000; ; bit >>>= 1) {
    if (a & bit) product ^= b;
    if ((a & (bit - 1)) === 0 || bit === 1) return product >>> 0;
    b = b & 1 ? (b >>> 1) ^ POLYNOMIAL : b >>> 1;
  }
}

/** x^n modulo the polynomial, by squaring. `n` may have more than 32 bits. */
function powerOfX(n: number): number {
  let power = 0x80000000;
  let square = 0x40000000;
  for (let rest = n; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) power = multiply(square, power);
    square = multiply(square, square);
  }
  return power;
}
