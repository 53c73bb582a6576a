/** Precision of stored spectra and exchanged gradients: float32, or float16 with loss scaling (Micikevicius et al. 2018). */
import { fromFloat16, toFloat16 } from '../numeric/index.js';

export const PRECISIONS = ['full', 'mixed'] as const;
export type Precision = (typeof PRECISIONS)[number];
export const BYTES_PER_VALUE: Record<Precision, number> = { full: 4, mixed: 2 };

/** Values in the precision of a job: float32, or the bits of float16. */
export type SpectraValues = Float32Array | Uint16Array;

export const inPrecision = (values: Float32Array, precision: Precision): SpectraValues =>
  precision === 'full' ? values : toFloat16(values);

/** Copies `into.length` values from `at` on. */
export function loadSpectra(values: SpectraValues, at: number, into: Float32Array): void {
  const part = values.subarray(at, at + into.length);
  if (part instanceof Float32Array) into.set(part);
  else fromFloat16(part, into);
}
