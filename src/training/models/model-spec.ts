/** A model as data: what goes in, its layers, what it is trained for and how. */

/** Common names of bands (STAC `eo`). Each of `nir` and `nir08` stands for the other in tiles that hold only one of them. */
export type BandName = 'red' | 'green' | 'blue' | 'nir' | 'nir08' | 'swir16';

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
  | { type: 'dense'; units: number; activation: 'relu' }
  /** Convolution 3x3, batch normalisation, leaky ReLU: the block of figure 6. */
  | { type: 'block'; filters: number }
  /** A block whose result is kept for the `up` of the same size, then maximum pooling 2x2. */
  | { type: 'down'; filters: number }
  /** Transposed convolution 2x2 with stride 2, joined with what the `down` of this size kept, then a block. */
  | { type: 'up'; filters: number }
  /** Convolution 3x3 + ReLU, without bias. */
  | { type: 'conv'; filters: number }
  /** relu(B(x) + x), B = convolution 1x1, ReLU, 3x3 with dilation 2, ReLU, 1x1, all without bias. */
  | { type: 'residual' }
  /** Makes a map of one channel, 0 to 1, of the features as they are here; they go on unchanged. */
  | { type: 'attention' }
  /** relu(B(x) * A + x), with B as in `residual` and A the latest map of attention. */
  | { type: 'attentive' };

/** What a model should say of a patch. */
export type TargetSpec =
  /** The mean of (a - b) / (a + b) over the patch. */
  | { kind: 'mean'; index: readonly [a: BandName, b: BandName] }
  /** (a - b) / (a + b) of each pixel. */
  | { kind: 'map'; index: readonly [a: BandName, b: BandName] }
  /** The input bands of each pixel as a date without cloud shows them. */
  | { kind: 'clear' };

export interface ModelSpec {
  name: string;
  /** For lists and help: what it predicts from what. */
  title: string;
  /** Its kind, by the name that the literature has for it. */
  architecture: string;
  inputs: readonly BandName[];
  target: TargetSpec;
  /** Pixels of a patch's side. */
  patchSize: number;
  /** Least patches, counted side by side without overlap, in training and validation together, and in validation alone. */
  minPatches: number;
  minValidationPatches: number;
  /** More patches than this, of a large tile or of many dates, add much time and little accuracy: a fixed share is taken. */
  maxPatches: number;
  /** First to last; an output of the target's shape follows. */
  layers: LayerSpec[];
  /** Of the layers that are trained, so many at the end make the answer from features that places share. */
  headLayers: number;
  /** `adversarial`: against a discriminator, see gan-learner.ts. */
  loss: 'squared error' | 'adversarial';
  epochs: number;
  batchSize: number;
  /** Bytes that the process of a place may take where nothing else is said, in the contained mode. */
  memoryPerCell: number;
  /** Adam's step size at the start; it falls to zero along half a cosine. */
  learningRate: number;
}

/** Values of one patch's target. */
export function targetShape({ target, inputs, patchSize }: ModelSpec): number[] {
  if (target.kind === 'mean') return [1];
  return [patchSize, patchSize, target.kind === 'map' ? 1 : inputs.length];
}

/** Planes that go into the net: the input bands; for a model that removes cloud those of `cloudInputs` in temporal-prior.ts. */
export function inputPlanes({ inputs, target }: Pick<ModelSpec, 'inputs' | 'target'>): number {
  return target.kind === 'clear' ? 4 * inputs.length + 1 : inputs.length;
}

/**
 * True if a fresh model begins with the ridge regression of its training data. A model that removes cloud begins with the adjusted
 * nearest values of its prior instead (temporal-prior.ts), because its few pairs of dates say little about other seasons.
 */
export const startsWithLinearFit = ({ target }: Pick<ModelSpec, 'target'>): boolean =>
  target.kind !== 'clear';

/** All bands that training reads, each once. */
export function requiredBands({ inputs, target }: ModelSpec): BandName[] {
  return [...new Set([...inputs, ...('index' in target ? target.index : [])])];
}

export function hasBatchNorm({ layers }: ModelSpec): boolean {
  return layers.some(({ type }) => type === 'block' || type === 'down' || type === 'up');
}
