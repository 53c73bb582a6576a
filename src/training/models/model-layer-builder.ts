/** Creates the layers of a graph and applies them. */
import type { SymbolicTensor } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';

/** Momentum of the moving averages of batch normalisation, which inference uses. */
const BATCH_NORM_MOMENTUM = 0.9;
const LEAKY_RELU_SLOPE = 0.2;

/** Names and seeds follow the order of creation, so that equal models give equal files. */
export class LayerBuilder {
  private made = 0;

  constructor(
    readonly tf: Tf,
    private readonly seed: number,
  ) {}

  /** Applies a new convolution. Default: with bias, zero padding, He initialisation and linear activation. */
  conv(
    x: SymbolicTensor,
    filters: number,
    kernelSize: number,
    change: Partial<Parameters<Tf['layers']['conv2d']>[0]> = {},
  ): SymbolicTensor {
    const options = {
      filters,
      kernelSize,
      padding: 'same' as const,
      kernelInitializer: this.kernel(),
      ...this.uniqueName('conv'),
      ...change,
    };
    return apply(this.tf.layers.conv2d(options), x);
  }

  kernel() {
    // Multiplied, so that neighbouring seeds share no kernel.
    return this.tf.initializers.heNormal({ seed: Math.imul(this.seed, 0x9e3779b1) + this.made });
  }

  uniqueName(kind: string): { name: string } {
    return { name: `${kind}${this.made++}` };
  }

  relu(x: SymbolicTensor): SymbolicTensor {
    return apply(this.tf.layers.reLU(this.uniqueName('relu')), x);
  }

  /** Convolution, batch normalisation, leaky ReLU. */
  block(x: SymbolicTensor, filters: number, kernelSize = 3, strides = 1): SymbolicTensor {
    const { layers } = this.tf;
    // The normalisation would remove a bias.
    const y = this.conv(x, filters, kernelSize, { strides, useBias: false });
    const normal = apply(
      layers.batchNormalization({ momentum: BATCH_NORM_MOMENTUM, ...this.uniqueName('norm') }),
      y,
    );
    return this.leakyRelu(normal);
  }

  leakyRelu(x: SymbolicTensor): SymbolicTensor {
    return apply(this.tf.layers.leakyReLU({ alpha: LEAKY_RELU_SLOPE, ...this.uniqueName('leaky') }), x);
  }

  add(...terms: SymbolicTensor[]): SymbolicTensor {
    return this.tf.layers.add(this.uniqueName('add')).apply(terms) as SymbolicTensor;
  }

  multiply(...factors: SymbolicTensor[]): SymbolicTensor {
    return this.tf.layers.multiply(this.uniqueName('multiply')).apply(factors) as SymbolicTensor;
  }

  concatenate(...parts: SymbolicTensor[]): SymbolicTensor {
    return this.tf.layers.concatenate(this.uniqueName('join')).apply(parts) as SymbolicTensor;
  }
}

export function apply(layer: { apply(x: SymbolicTensor): unknown }, x: SymbolicTensor): SymbolicTensor {
  return layer.apply(x) as SymbolicTensor;
}
