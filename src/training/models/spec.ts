/** A model as data: what goes in, its layers, what it is trained for and how. */

export type LayerSpec =
  /**
   * A fixed linear mix of the input bands, never trained: output o = bias[o] + sum of weights[band][o] * input[band]. It
   * gives every place the same scaling.
   */
  | { type: 'mix'; weights: number[][]; bias: number[] }
  /** Convolution 3x3 + ReLU + average pooling 2x2, the cell of the paper's figure 5. */
  | { type: 'cell'; filters: number }
  /** Mean over all pixels of each filter. */
  | { type: 'average' }
  | { type: 'dense'; units: number; activation: 'relu' };

export interface ModelSpec {
  name: string;
  /** Height, width and bands of a patch of physical values. */
  inputShape: [height: number, width: number, bands: number];
  /** First to last. One linear output follows, which starts at the mean of the training targets. */
  layers: LayerSpec[];
  loss: 'meanSquaredError';
  epochs: number;
  batchSize: number;
  /** Adam's step size at the start; it falls to zero along half a cosine. */
  learningRate: number;
}
