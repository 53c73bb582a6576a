/**
 * Completes the convolutions of tfjs-node (4.22). Its gradients ignore dilation, and tfjs-core refuses to call them with dilation; none
 * of its convolutions accepts padding in pixels.
 */
import type {
  Conv2DAttrs,
  Conv2DBackpropFilterAttrs,
  Conv2DBackpropInputAttrs,
  KernelFunc,
  NamedAttrMap,
  Tensor4D,
} from '@tensorflow/tfjs-core';
import type { Tf } from '../tfjs.js';
import { replaceKernel } from './replace-tfjs-kernel.js';
import { replaceConvolutionOfLayers } from './tfjs-conv-layer.js';
import type { WithDilations } from './tfjs-conv2d-grad.js';

const BACKEND = 'tensorflow';

type Given = Parameters<KernelFunc>[0];
type Shape = [number, number, number, number];
type Pairs = [[number, number], [number, number]];
type Attributes = Pick<Conv2DAttrs, 'strides' | 'pad' | 'dimRoundingMode' | 'dataFormat'> & WithDilations;

/** Call it once for a `tf`, after the backend of tfjs-node has started. */
export function completeNativeConvolutions(tf: Tf): void {
  const replace = (name: string, make: (stock: KernelFunc) => KernelFunc) =>
    replaceKernel(tf, BACKEND, name, make);
  for (const name of [tf.Conv2D, tf.FusedConv2D])
    replace(name, (stock) => (given) => stock({ ...given, attrs: explicitlyPadded(given.attrs) }));
  replace(tf.Conv2DBackpropInput, (stock) => backpropInput(tf, stock));
  replace(tf.Conv2DBackpropFilter, (stock) => backpropFilter(tf, stock));
  // The stock layer refuses dilation.
  replaceConvolutionOfLayers(tf);
}

/** TensorFlow accepts the padding of each side, but not one number. */
function explicitlyPadded(attrs: Given['attrs']): Given['attrs'] {
  const { pad } = attrs as NamedAttrMap & Attributes;
  if (typeof pad !== 'number') return attrs;
  const sides = [pad, pad];
  return { ...attrs, pad: [[0, 0], sides, sides, [0, 0]] };
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
