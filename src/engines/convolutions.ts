/**
 * Completes the convolutions of layers and of tfjs-node (4.22). The gradients of tfjs-node ignore dilation, and tfjs-core refuses to call
 * them with dilation; none of its convolutions accepts padding in pixels.
 */
import type {
  Conv2DAttrs,
  Conv2DBackpropFilterAttrs,
  Conv2DBackpropInputAttrs,
  GradConfig,
  KernelFunc,
  NamedAttrMap,
  Tensor,
  Tensor4D,
} from '@tensorflow/tfjs-core';
import type { layers } from '@tensorflow/tfjs-layers';
import { replaceGradient, replaceKernel, type Tf } from './tfjs.js';

/** Attribute of the kernels of the two gradients that tfjs does not declare. */
export interface WithDilations {
  /** Distance between the taps of the filter. Default: 1. */
  dilations?: Conv2DAttrs['dilations'];
}

/** Gradient of `Conv2D` or of a linear `FusedConv2D`, including dilated ones, which the stock gradient refuses. */
function conv2dGrad(tf: Tf, kernelName: string): GradConfig {
  return {
    kernelName,
    inputsToSave: ['x', 'filter'],
    gradFunc: (gradient, saved, attrs) => {
      const [x, filter] = saved as [Tensor4D, Tensor4D];
      const dy = gradient as Tensor4D;
      const { strides, pad, dataFormat, dimRoundingMode, dilations } = attrs as NamedAttrMap & Conv2DAttrs;
      const shared = { strides, pad, dataFormat, dimRoundingMode, dilations };
      const run = (name: string, inputs: Record<string, Tensor>, more: object) =>
        tf.engine().runKernel(name, inputs, { ...shared, ...more } as NamedAttrMap) as Tensor;
      return {
        x: () => run(tf.Conv2DBackpropInput, { dy, filter }, { inputShape: x.shape }),
        filter: () => run(tf.Conv2DBackpropFilter, { x, dy }, { filterShape: filter.shape }),
        bias: () => tf.sum(dy, [0, 1, 2]),
      };
    },
  };
}

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

const BACKEND = 'tensorflow';

type Shape = [number, number, number, number];
type Pairs = [[number, number], [number, number]];
type ExplicitPadding = Exclude<Conv2DAttrs['pad'], string | number>;
type Attributes = Pick<Conv2DAttrs, 'strides' | 'pad' | 'dimRoundingMode' | 'dataFormat'> & WithDilations;

/** Call it once for a `tf`, after the backend of tfjs-node has started. */
export function completeNativeConvolutions(tf: Tf): void {
  const replace = (name: string, make: (stock: KernelFunc) => KernelFunc) =>
    replaceKernel(tf, BACKEND, name, make);
  for (const name of [tf.Conv2D, tf.FusedConv2D])
    replace(name, (stock) => (given) => {
      const attrs = given.attrs as NamedAttrMap & Attributes;
      return stock({ ...given, attrs: { ...attrs, pad: explicitPadding(attrs.pad) } });
    });
  replace(tf.Conv2DBackpropInput, (stock) => backpropInput(tf, stock));
  replace(tf.Conv2DBackpropFilter, (stock) => backpropFilter(tf, stock));
  // The stock layer refuses dilation.
  replaceConvolutionOfLayers(tf);
}

/**
 * The padding of each side in place of one number for all. TensorFlow does not accept one number; tfjs does, but derives the width of the
 * output from the height of the filter and of the stride.
 */
export function explicitPadding<Pad extends Attributes['pad']>(
  pad: Pad,
): Exclude<Pad, number> | ExplicitPadding {
  if (typeof pad !== 'number') return pad as Exclude<Pad, number>;
  if (!Number.isInteger(pad)) throw new Error(`a padding of ${pad} pixels is not supported`);
  return [
    [0, 0],
    [pad, pad],
    [pad, pad],
    [0, 0],
  ];
}

function backpropInput(tf: Tf, stock: KernelFunc): KernelFunc {
  return (given) => {
    const attrs = given.attrs as NamedAttrMap & Conv2DBackpropInputAttrs & WithDilations;
    const dy = given.inputs['dy'] as Tensor4D;
    const filter = given.inputs['filter'] as Tensor4D;
    if (isStock(attrs)) return stock(given);
    return tf.tidy(() => {
      const { block, padding, ends, shape } = spaceToBatchConvolution(
        tf,
        attrs.inputShape,
        filter.shape,
        attrs,
      );
      const inputs = { dy: tf.spaceToBatchND(dy, block, ends), filter };
      const plain = { ...attrs, pad: 'valid', dilations: 1, inputShape: shape };
      const dx = tf.engine().runKernel(tf.Conv2DBackpropInput, inputs, plain) as Tensor4D;
      return tf.batchToSpaceND(dx, block, padding);
    });
  };
}

function backpropFilter(tf: Tf, stock: KernelFunc): KernelFunc {
  return (given) => {
    const attrs = given.attrs as NamedAttrMap & Conv2DBackpropFilterAttrs & WithDilations;
    const x = given.inputs['x'] as Tensor4D;
    const dy = given.inputs['dy'] as Tensor4D;
    if (isStock(attrs)) return stock(given);
    return tf.tidy(() => {
      const { block, padding, ends } = spaceToBatchConvolution(tf, x.shape, attrs.filterShape, attrs);
      const inputs = { x: tf.spaceToBatchND(x, block, padding), dy: tf.spaceToBatchND(dy, block, ends) };
      const plain = { ...attrs, pad: 'valid', dilations: 1 };
      return tf.engine().runKernel(tf.Conv2DBackpropFilter, inputs, plain) as Tensor4D;
    });
  };
}

function isStock({ pad, dilations = 1 }: Attributes): boolean {
  return typeof pad === 'string' && [dilations].flat().every((distance) => distance === 1);
}

/**
 * A convolution with dilation d is a plain convolution, without padding, of every d-th row and column of the padded input, for each of
 * the d x d offsets (the space-to-batch of Yu and Koltun's atrous convolutions in TensorFlow). Returns d of both axes, the padding that
 * makes the input divisible, the corresponding padding of the output, and the shape of the divided input. In tfjs, strides are 1 if d is
 * not.
 */
function spaceToBatchConvolution(
  tf: Tf,
  input: number[],
  filter: number[],
  { strides, pad, dimRoundingMode, dilations = 1 }: Attributes,
): { block: [number, number]; padding: Pairs; ends: Pairs; shape: Shape } {
  const { dilationHeight, dilationWidth, padInfo, ...info } = tf.backend_util.computeConv2DInfo(
    input as Shape,
    filter as Shape,
    strides,
    dilations,
    pad,
    dimRoundingMode,
  );
  const { top, bottom, left, right } = padInfo;
  const missing = (size: number, d: number) => (d - (size % d)) % d;
  const rows = missing(info.inHeight + top + bottom, dilationHeight);
  const columns = missing(info.inWidth + left + right, dilationWidth);
  return {
    block: [dilationHeight, dilationWidth],
    padding: [
      [top, bottom + rows],
      [left, right + columns],
    ],
    ends: [
      [0, rows],
      [0, columns],
    ],
    shape: [
      info.batchSize * dilationHeight * dilationWidth,
      (info.inHeight + top + bottom + rows) / dilationHeight,
      (info.inWidth + left + right + columns) / dilationWidth,
      info.inChannels,
    ],
  };
}
