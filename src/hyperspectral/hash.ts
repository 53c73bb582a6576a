/** Hashes of numbers and of plain data. */
import { createHash } from 'node:crypto';

/**
 * Returns the first 16 hex digits of SHA-256 over data of JSON types and typed arrays. It uses JSON, because `serialize` of node:v8 writes
 * the same integer in two ways, depending on its representation in V8.
 */
export function sha256Digest(data: object): string {
  const text = JSON.stringify(data, function (this: Record<string, unknown>, key, value) {
    // The `value` of a Buffer is the result of its `toJSON`.
    const own = this[key];
    if (!ArrayBuffer.isView(own)) return value;
    return Buffer.from(own.buffer, own.byteOffset, own.byteLength).toString('base64');
  });
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** The finalizer of MurmurHash3 (Appleby 2011), which mixes all bits of a 32-bit number. The result may be negative. */
export function murmurFinalise(number: number): number {
  let bits = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return bits ^ (bits >>> 16);
}
