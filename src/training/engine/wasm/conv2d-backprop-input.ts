import type {
  Conv2DBackpropInputAttrs,
  Conv2DBackpropInputInputs,
  KernelConfig,
  Tensor,
  Tensor4D,
  TensorInfo,
} from '@tensorflow/tfjs-core';
import type { Tf } from '../tf.js';
import type { Dilated } from './conv2d-grad.js';
import { wasmKernel } from './kernel.js';

/**
 * Gradient of a convolution by its input, and the forward pass of a transposed convolution. The stock kernel loops over
 * scalars; two common geometries become fast kernels here, the rest stays with `stock`:
 * - stride 1: a convolution of dY with the filter turned by 180 degrees;
 * - windows that neither overlap nor leave gaps (2x2 stride 2): a product per pixel, then depth to space.
 */
export function conv2dBackpropInput(tf: Tf, stock: KernelConfig): KernelConfig {
  return wasmKernel<Conv2DBackpropInputInputs, Conv2DBackpropInputAttrs & Dilated>(
    tf.Conv2DBackpropInput,
    ({ inputs, attrs, backend }) => {
      const dy = inputs.dy as Tensor4D;
      const filter = inputs.filter as Tensor4D;
      const [height, width] = filter.shape;
      const { padInfo, strideHeight, strideWidth, dilationHeight, dilationWidth } =
        tf.backend_util.computeConv2DInfo(
          attrs.inputShape,
          filter.shape,
          attrs.strides,
          attrs.dilations ?? 1,
          attrs.pad,
          attrs.dimRoundingMode,
        );
      if (strideHeight === 1 && strideWidth === 1) {
        const down = (height - 1) * dilationHeight;
        const across = (width - 1) * dilationWidth;
        return turnedConvolution(tf, dy, filter, [dilationHeight, dilationWidth], {
          top: down - padInfo.top,
          bottom: down - padInfo.bottom,
          left: across - padInfo.left,
          right: across - padInfo.right,
        });
      }
      const unpadded = padInfo.top + padInfo.bottom + padInfo.left + padInfo.right === 0;
      const covered =
        attrs.inputShape[1] === dy.shape[1] * height && attrs.inputShape[2] === dy.shape[2] * width;
      if (strideHeight === height && strideWidth === width && height === width && unpadded && covered) {
        return spread(tf, dy, filter);
      }
      return stock.kernelFunc({ inputs, attrs: { ...attrs }, backend }) as TensorInfo;
    },
  );
}

interface Padding {
  top: number;
  bottom: number;
  left: number;
  right: number;
}

function turnedConvolution(
  tf: Tf,
  dy: Tensor4D,
  filter: Tensor4D,
  dilations: [number, number],
  pad: Padding,
): Tensor {
  return tf.tidy(() => {
    const turned = tf.transpose(tf.reverse(filter, [0, 1]), [0, 1, 3, 2]);
    // Padding beyond the filter's reach turns into cutting: those pixels of dY touch no input.
    const cut = (n: number) => Math.max(0, -n);
    const grow = (n: number) => Math.max(0, n);
    const [batch, rows, columns, outputs] = dy.shape;
    const inner = tf.slice(
      dy,
      [0, cut(pad.top), cut(pad.left), 0],
      [batch, rows - cut(pad.top) - cut(pad.bottom), columns - cut(pad.left) - cut(pad.right), outputs],
    );
    const padded = tf.pad(inner, [
      [0, 0],
      [grow(pad.top), grow(pad.bottom)],
      [grow(pad.left), grow(pad.right)],
      [0, 0],
    ]);
    return tf
      .engine()
      .runKernel(
        tf.Conv2D,
        { x: padded, filter: turned },
        { strides: [1, 1], pad: 'valid', dataFormat: 'NHWC', dilations },
      ) as Tensor;
  });
}

function spread(tf: Tf, dy: Tensor4D, filter: Tensor4D): Tensor {
  return tf.tidy(() => {
    const [size, , channels, outputs] = filter.shape;
    const [batch, rows, columns] = dy.shape;
    const weights = tf.reshape(tf.transpose(filter, [3, 0, 1, 2]), [outputs, size * size * channels]);
    const values = tf.matMul(tf.reshape(dy, [-1, outputs]), weights);
    return tf.depthToSpace(
      tf.reshape(values, [batch, rows, columns, size * size * channels]) as Tensor4D,
      size,
      'NHWC',
    );
  });
}
