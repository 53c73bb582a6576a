import type { KernelConfig, UnsortedSegmentSumAttrs, UnsortedSegmentSumInputs } from '@tensorflow/tfjs-core';
import type { Tf } from '../tfjs.js';
import { float32View, int32View, newZeros, wasmKernel } from './wasm-kernel.js';

/**
 * Sums the rows of x [rows, ...] that share a segment id into [segments, ...]; it is the gradient of gather, which the WASM
 * backend lacks. Rows whose id is not a segment are dropped, as TensorFlow does.
 */
export function unsortedSegmentSum(tf: Tf): KernelConfig {
  return wasmKernel<UnsortedSegmentSumInputs, UnsortedSegmentSumAttrs>(
    tf.UnsortedSegmentSum,
    ({ inputs, attrs, backend }) => {
      const [rows, ...rest] = inputs.x.shape as [number, ...number[]];
      const size = tf.util.sizeFromShape(rest);
      const output = newZeros(backend, [attrs.numSegments, ...rest]);
      const sums = output.clear();
      const x = float32View(backend, inputs.x);
      const segments = int32View(backend, inputs.segmentIds);
      for (let row = 0; row < rows; row++) {
        const segment = segments[row];
        if (segment < 0 || segment >= attrs.numSegments) continue;
        for (let i = 0; i < size; i++) sums[segment * size + i] += x[row * size + i];
      }
      return output.tensor;
    },
  );
}
