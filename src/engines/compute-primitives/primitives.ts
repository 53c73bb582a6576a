/**
 * Numerical primitives on the values of tensors, used by our own kernels. There are two implementations: WebAssembly (wasm.ts) and the
 * oneDNN addon (native/onednn.cc), which exports the same names. One contract test runs both.
 */

/** The operand (input, filter, output) that an operation computes from the other two. */
export const FORWARD = 0;
export const INPUT_GRADIENT = 1;
export const FILTER_GRADIENT = 2;

/**
 * All arrays must have exactly the sizes that follow from the numbers before them; the addon throws otherwise. They may be views of the
 * heap.
 */
export interface ComputePrimitives {
  /**
   * Computes a convolution, [N,H,W,C] with a filter [h,w,C,O], or one of its gradients. Geometry: batch, height, width, channels in and
   * out, filter height and width, strides, dilations, padding at the top, left, bottom and right.
   */
  convolve(
    direction: number,
    geometry: Int32Array,
    x: Float32Array,
    filter: Float32Array,
    y: Float32Array,
    bias: Float32Array | null,
  ): void;
  /** c [m,n] = a [m,k] b [k,n]. Shape: m, n, k, 1 if a is transposed, 1 if b is transposed. */
  multiply(shape: Int32Array, a: Float32Array, b: Float32Array, c: Float32Array): void;
  /** Sums each column of a matrix. */
  columnSums(rows: number, columns: number, x: Float32Array, sums: Float32Array): void;
  /**
   * Computes the maximum of each window, NaN if the window has one. Geometry: batch, height, width, channels, rows and columns of the
   * output, filter height and width, strides, padding at the top and left.
   */
  maxPool(geometry: Int32Array, x: Float32Array, y: Float32Array): void;
  /** Adds each gradient to dx at the first maximum of its window. The geometry is that of `maxPool`, here and below. */
  maxPoolGradient(geometry: Int32Array, x: Float32Array, dy: Float32Array, dx: Float32Array): void;
  /** Computes the mean of the pixels of each window. */
  avgPool(geometry: Int32Array, x: Float32Array, y: Float32Array): void;
  /** Distributes each gradient equally over the pixels of its window in dx. */
  avgPoolGradient(geometry: Int32Array, dy: Float32Array, dx: Float32Array): void;
  /** y = x if x is not negative or is NaN, otherwise alpha x. Alpha 0 is a plain ReLU. */
  leakyRelu(length: number, alpha: number, x: Float32Array, y: Float32Array): void;
  leakyReluGradient(length: number, alpha: number, x: Float32Array, dy: Float32Array, dx: Float32Array): void;
  /** y = scale (x - mean) + offset, for each channel. */
  scaleChannels(
    rows: number,
    channels: number,
    x: Float32Array,
    mean: Float32Array,
    scale: Float32Array,
    offset: Float32Array,
    y: Float32Array,
  ): void;
  /** Computes mean and (population) variance of each channel. */
  channelMoments(
    rows: number,
    channels: number,
    x: Float32Array,
    mean: Float32Array,
    variance: Float32Array,
  ): void;
  /** Computes for each channel the sum of dy and of dy (x - mean). */
  batchNormSums(
    rows: number,
    channels: number,
    x: Float32Array,
    dy: Float32Array,
    mean: Float32Array,
    sums: Float32Array,
    products: Float32Array,
  ): void;
  /** dx = scale dy + slope (x - mean) + offset, for each channel. */
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
   * Copies a range of columns of each row. Geometry: rows and columns to copy; width and first column of the source, and of the target.
   */
  copyColumns(geometry: Int32Array, from: Float32Array, to: Float32Array): void;
  /**
   * One step of Adam: g = gradient + decay variable, first' = first + (1 - beta1) (g - first), second' = second + (1 - beta2) (g² -
   * second), variable' = variable - rate first' / (sqrt(second') + epsilon).
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
