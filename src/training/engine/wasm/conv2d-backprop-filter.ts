import type {
  Conv2DBackpropFilterAttrs,
  Conv2DBackpropFilterInputs,
  KernelConfig,
  Tensor,
  Tensor4D,
} from '@tensorflow/tfjs-core';
import type { Tf } from '../tf.js';
import type { Dilated } from './conv2d-grad.js';
import { wasmKernel } from './kernel.js';

/**
 * Gradient of a convolution by its filter, which the WASM backend lacks.
 *
 * dW[i,j,c,o] = sum over n,y,x of X[n, y*stride+i, x*stride+j, c] * dY[n,y,x,o] is itself a convolution: of X laid out as
 * [C,H,W,N] with dY laid out as the filter [Ho,Wo,N,O], dilated by the stride; where the filter is dilated itself, that is the stride. That is one call of the fast Conv2D.
 */
export function conv2dBackpropFilter(tf: Tf): KernelConfig {
  return wasmKernel<Conv2DBackpropFilterInputs, Conv2DBackpropFilterAttrs & Dilated>(
    tf.Conv2DBackpropFilter,
    ({ inputs, attrs }) => {
      const x = inputs.x as Tensor4D;
      const dy = inputs.dy as Tensor4D;
      const [height, width, channels, outputs] = attrs.filterShape;
      const { padInfo, strideHeight, strideWidth, dilationHeight, dilationWidth } =
        tf.backend_util.computeConv2DInfo(
          x.shape,
          attrs.filterShape,
          attrs.strides,
          attrs.dilations ?? 1,
          attrs.pad,
          attrs.dimRoundingMode,
        );
      return tf.tidy(() => {
        const padded = tf.pad(x, [
          [0, 0],
          [padInfo.top, padInfo.bottom],
          [padInfo.left, padInfo.right],
          [0, 0],
        ]);
        if (height === 1 && width === 1 && strideHeight === 1 && strideWidth === 1) {
          const product = tf.matMul(tf.reshape(padded, [-1, channels]), tf.reshape(dy, [-1, outputs]), true);
          return tf.reshape(product, attrs.filterShape);
        }
        const correlated = tf.engine().runKernel(
          tf.Conv2D,
          { x: tf.transpose(padded, [3, 1, 2, 0]), filter: tf.transpose(dy, [1, 2, 0, 3]) },
          {
            strides: [dilationHeight, dilationWidth],
            pad: 'valid',
            dataFormat: 'NHWC',
            dilations: [strideHeight, strideWidth],
          },
        ) as Tensor;
        // Rows and columns of X that no output reaches make the result larger than the filter.
        const gradient = tf.slice(correlated, [0, 0, 0, 0], [channels, height, width, outputs]);
        return tf.transpose(gradient, [1, 2, 0, 3]);
      });
    },
  );
}
