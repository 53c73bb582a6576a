import { npyHead } from '../../derive/index.js';

/** A NumPy file of f64. */
export function matrixFile(values: Float64Array, shape: number[]): Buffer {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return Buffer.concat([npyHead('float64', shape), bytes]);
}
