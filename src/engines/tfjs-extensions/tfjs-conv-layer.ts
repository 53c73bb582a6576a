import type { Tensor } from '@tensorflow/tfjs-core';
import type { layers } from '@tensorflow/tfjs-layers';
import type { Tf } from '../tfjs.js';
import { replaceGradient } from './replace-tfjs-kernel.js';
import { conv2dGrad } from './tfjs-conv2d-grad.js';

/** Members of the layer, most of which are declared private or protected. */
interface ConvLayer {
  call: ReturnType<typeof layers.conv2d>['call'];
  readonly rank: number;
  readonly kernel: { read(): Tensor };
  readonly bias: { read(): Tensor } | null;
  readonly strides: number[];
  readonly padding: string;
  readonly dataFormat: string;
  readonly dilationRate: number[];
  readonly activation: { apply(x: Tensor): Tensor };
}

/**
 * In training, tfjs adds the bias of a convolution with ReLU in a separate pass, and computes the gradient of a linear convolution by its
 * input even if it is not used, as in the first layer. This replacement includes the bias in the convolution, and computes only gradients
 * that are used. It also replaces the gradients of both kernels, because the stock gradient refuses dilation.
 */
export function replaceConvolutionOfLayers(tf: Tf): void {
  for (const name of [tf.Conv2D, tf.FusedConv2D]) replaceGradient(tf, conv2dGrad(tf, name));
  const layer = tf.layers.conv2d({ filters: 1, kernelSize: 1, name: 'any' });
  const prototype = Object.getPrototypeOf(Object.getPrototypeOf(layer)) as ConvLayer;
  const stock = prototype.call;
  prototype.call = function (this: ConvLayer, inputs, kwargs) {
    const { rank, kernel, bias, strides, padding, dataFormat, dilationRate, activation } = this;
    if (rank !== 2 || dataFormat === 'channelsFirst') return stock.call(this, inputs, kwargs);
    return tf.tidy(() => {
      const x = Array.isArray(inputs) ? inputs[0] : inputs;
      const attrs = {
        strides,
        pad: padding,
        dataFormat: 'NHWC',
        dilations: dilationRate,
        activation: 'linear',
      };
      const given = { x, filter: kernel.read(), ...(bias && { bias: bias.read() }) };
      const y = tf.engine().runKernel(tf.FusedConv2D, given, attrs) as Tensor;
      return activation.apply(y);
    });
  };
}
