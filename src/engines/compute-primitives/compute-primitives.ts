/**
 * The loops over the values of tensors under our kernels, where tfjs has none or a slow one: once in WebAssembly
 * (wasm-primitives.ts), once in the addon over oneDNN.
 */

/** What an operation computes from the two others of: input, filter, output. */
export const FORWARD = 0;
export const INPUT_GRADIENT = 1;
export const FILTER_GRADIENT = 2;

/**
 * All arrays have exactly the sizes that follow from the numbers before them; the addon throws where they have not. They may be
 * views of the heap.
 */
export interface ComputePrimitives {
  /**
   * A convolution, [N,H,W,C] with a filter [h,w,C,O], or one of its gradients. The geometry: batch, height, width, channels in
   * and out, filter height and width, strides, dilations, padding at the top, left, bottom and right.
   */
  convolve(
    direction: number,
    geometry: Int32Array,
    x: Float32Array,
    filter: Float32Array,
    y: Float32Array,
    bias: Float32Array | null,
  ): void;
  /** c [m,n] = a [m,k] b [k,n] of the shape m, n, k, whether a lies transposed, whether b does. */
  multiply(shape: Int32Array, a: Float32Array, b: Float32Array, c: Float32Array): void;
  /** The sum of each column of a matrix. */
  columnSums(rows: number, columns: number, x: Float32Array, sums: Float32Array): void;
  /**
   * The maximum of each window, NaN if the window has one. The geometry: batch, height, width, channels, rows and columns of
   * the output, filter height and width, strides, padding at the top and left.
   */
  maxPool(geometry: Int32Array, x: Float32Array, y: Float32Array): void;
  /** dx: each gradient at the first maximum of its window. The geometry is that of `maxPoolKernel`, here and below. */
  maxPoolGradient(geometry: Int32Array, x: Float32Array, dy: Float32Array, dx: Float32Array): void;
  /** The mean of the pixels of each window. */
  avgPool(geometry: Int32Array, x: Float32Array, y: Float32Array): void;
  /** dx: each gradient, in equal parts, at the pixels of its window. */
  avgPoolGradient(geometry: Int32Array, dy: Float32Array, dx: Float32Array): void;
  /** x where it is not negative, NaN included, else alpha x; alpha 0 is a plain ReLU. */
  leakyRelu(length: number, alpha: number, x: Float32Array, y: Float32Array): void;
  leakyReluGradient(length: number, alpha: number, x: Float32Array, dy: Float32Array, dx: Float32Array): void;
  /** y = scale (x - mean) + offset, of each channel. */
  scaleChannels(
    rows: number,
    channels: number,
    x: Float32Array,
    mean: Float32Array,
    scale: Float32Array,
    offset: Float32Array,
    y: Float32Array,
  ): void;
  /** Mean and variance of each channel, the variance that of the rows alone. */
  channelMoments(
    rows: number,
    channels: number,
    x: Float32Array,
    mean: Float32Array,
    variance: Float32Array,
  ): void;
  /** Of each channel the sum of dy, and that of dy (x - mean). */
  batchNormSums(
    rows: number,
    channels: number,
    x: Float32Array,
    dy: Float32Array,
    mean: Float32Array,
    sums: Float32Array,
    products: Float32Array,
  ): void;
  /** dx = scale dy + slope (x - mean) + offset, of each channel. */
  batchNormGradient(
    rows: number,
    channels: number,
    x: Float32Array,
    dy: Float32Array,
    mean: Float32Array,
    scale: Float32Array,
    slope: Float32Array,
    offset: Float32Array,
    dx: Float32Array,
  ): void;
  /**
   * A run of columns of each row. The geometry: rows, columns to be copied; width and first column of the one matrix, and of
   * the other.
   */
  copyColumns(geometry: Int32Array, from: Float32Array, to: Float32Array): void;
  /**
   * A step of Adam: g = gradient + decay variable, first' = first + (1 - beta1) (g - first), the second with g squared and beta2,
   * variable' = variable - rate first' / (sqrt(second') + epsilon).
   */
  adam(
    length: number,
    beta1: number,
    beta2: number,
    decay: number,
    rate: number,
    epsilon: number,
    variable: Float32Array,
    gradient: Float32Array,
    first: Float32Array,
    second: Float32Array,
    toVariable: Float32Array,
    toFirst: Float32Array,
    toSecond: Float32Array,
  ): void;
}
