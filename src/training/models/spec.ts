/** A model as data: inputs, layers, target and training parameters. */

/** Common band names (STAC `eo`). `nir` and `nir08` replace each other in tiles that have only one of them. */
export type BandName = 'red' | 'green' | 'blue' | 'nir' | 'nir08' | 'swir16';

export type LayerSpec =
  /**
   * Fixed linear function of the input bands: output o = bias[o] + sum of weights[band][o] * input[band]. It is not trained, so all cells
   * have the same normalisation.
   */
  | { type: 'mix'; weights: number[][]; bias: number[] }
  /** Convolution 3x3 + ReLU + average pooling 2x2, the cell of figure 5 of the paper. */
  | { type: 'cell'; filters: number }
  /** Mean over all pixels of each filter. */
  | { type: 'average' }
  | { type: 'dense'; units: number; activation: 'relu' }
  /** Convolution 3x3, batch normalisation, leaky ReLU: the block of figure 6. */
  | { type: 'block'; filters: number }
  /** A block whose output is also the skip connection of the `up` layer of the same size, then maximum pooling 2x2. */
  | { type: 'down'; filters: number }
  /** Transposed convolution 2x2 with stride 2, concatenated with the output of the `down` block of this size, then a block. */
  | { type: 'up'; filters: number }
  /** Convolution 3x3 + ReLU, without bias. */
  | { type: 'conv'; filters: number }
  /** relu(B(x) + x). B: convolution 1x1, ReLU, 3x3 with dilation 2, ReLU, 1x1, all without bias. */
  | { type: 'residual' }
  /** Computes an attention map of one channel, 0 to 1, from the features, and passes the features on unchanged. */
  | { type: 'attention' }
  /** relu(B(x) * A + x). B as in `residual`, A the last attention map. */
  | { type: 'attentive' };

/** The target that a model predicts for a patch. */
export type TargetSpec =
  /** The mean of (a - b) / (a + b) over the patch. */
  | { kind: 'mean'; index: readonly [a: BandName, b: BandName] }
  /** (a - b) / (a + b) of each pixel. */
  | { kind: 'map'; index: readonly [a: BandName, b: BandName] }
  /** The input bands of each pixel, as on a date without cloud. */
  | { kind: 'clear' };

export interface ModelSpec {
  name: string;
  /** Inputs and prediction in a few words, for lists and help. */
  title: string;
  /** Name of the network architecture in the literature. */
  architecture: string;
  inputs: readonly BandName[];
  target: TargetSpec;
  /** Side of a patch, in pixels. */
  patchSize: number;
  /** Minimum numbers of patches, counted side by side without overlap: training and validation together, and validation alone. */
  minPatches: number;
  minValidationPatches: number;
  /**
   * Maximum number of patches. More patches, from a large tile or many dates, cost much time and add little accuracy; a fixed subset is
   * used.
   */
  maxPatches: number;
  /** From first to last. An output of the shape of the target follows. */
  layers: LayerSpec[];
  /** Number of trainable layers at the end that compute the output from features which cells share. */
  headLayers: number;
  /** `adversarial`: against a discriminator, see training/learner.ts. */
  loss: 'squared error' | 'adversarial';
  epochs: number;
  batchSize: number;
  /** Default memory limit of the process of a cell in the contained mode, in bytes. */
  memoryPerCell: number;
  /** Initial learning rate of Adam. It falls to zero along half a cosine. */
  learningRate: number;
  /** True if the model also reads the history of the place, after its bands (history.ts). */
  history?: boolean;
}

/** Number of input planes: the input bands and the history, or for cloud removal those of `cloudInputs` in prior.ts. */
export function inputPlanes(spec: Pick<ModelSpec, 'inputs' | 'target' | 'history'>): number {
  const { inputs, target, history } = spec;
  if (target.kind === 'clear') return 4 * inputs.length + 1;
  return inputs.length + (history ? historyLayout(spec).count : 0);
}

/** Positions of the planes of the history of a place, counted from the first of them. */
export interface HistoryLayout {
  /** 1 where other dates measured the pixel, or enough pixels of the patch. The other planes say nothing where it is 0. */
  has: number;
  /** Mean of the target over the other dates, its standard deviation, and its value on the date nearest in time. */
  mean: number;
  spread: number;
  nearest: number;
  /** The first of the means of the bands, in the order of `requiredBands`. */
  bands: number;
  count: number;
}

export function historyLayout(spec: Pick<ModelSpec, 'inputs' | 'target'>): HistoryLayout {
  const bands = requiredBands(spec).length;
  return {
    has: 0,
    mean: 1,
    bands: 2,
    spread: 2 + bands,
    nearest: 3 + bands,
    count: 4 + bands,
  };
}

/** Returns the specification of a model that also reads the history of its place. */
export function withHistory(spec: ModelSpec): ModelSpec {
  const [first, ...others] = spec.layers;
  const layers: LayerSpec[] = first?.type === 'mix' ? [historyMix(spec, first), ...others] : spec.layers;
  return { ...spec, history: true, layers };
}

/** Normalises the history as the bands of the date: the means of the bands like these, and the means of the other bands around 0.2. */
function historyMix(spec: ModelSpec, { weights, bias }: LayerSpec & { type: 'mix' }): LayerSpec {
  const { inputs } = spec;
  const { mean, bands, spread, nearest } = historyLayout(spec);
  const planes = inputPlanes({ ...spec, history: true });
  const columns: { at: number; weight: number }[][] = [];
  const biases: number[] = [];
  const add = (bias: number, terms: { at: number; weight: number }[]) => {
    columns.push(terms);
    biases.push(bias);
  };
  for (const from of [0, inputs.length + bands])
    for (const [o, constant] of bias.entries())
      add(
        constant,
        weights.map((row, b) => ({ at: from + b, weight: row[o]! })),
      );
  for (const [b] of requiredBands(spec).slice(inputs.length).entries())
    add(-1, [{ at: inputs.length + bands + inputs.length + b, weight: 5 }]);
  for (const plane of [mean, nearest, spread]) add(0, [{ at: inputs.length + plane, weight: 1 }]);
  const all = Array.from({ length: planes }, () => new Array<number>(columns.length).fill(0));
  for (const [o, terms] of columns.entries()) for (const { at, weight } of terms) all[at]![o] = weight;
  return { type: 'mix', weights: all, bias: biases };
}

/**
 * True if a fresh model starts from the ridge regression of its training data. A cloud-removal model starts from the adjusted nearest
 * values of its prior instead (prior.ts), because its few pairs of dates contain little about other seasons.
 */
export const startsWithLinearFit = ({ target }: Pick<ModelSpec, 'target'>): boolean =>
  target.kind !== 'clear';

/** The range of the values that a model can predict; undefined if it has no limits. */
export const targetRange = ({ kind }: TargetSpec): [low: number, high: number] | undefined =>
  kind === 'clear' ? undefined : [-1, 1];

/** All bands that training reads, without duplicates. */
export function requiredBands({ inputs, target }: Pick<ModelSpec, 'inputs' | 'target'>): BandName[] {
  return [...new Set([...inputs, ...('index' in target ? target.index : [])])];
}

export function hasBatchNorm({ layers }: ModelSpec): boolean {
  return layers.some(({ type }) => type === 'block' || type === 'down' || type === 'up');
}

/** Shared by the models that read red, green and blue. */
export const RGB_BANDS: readonly BandName[] = ['red', 'green', 'blue'];

/**
 * Brightness and two colour differences instead of the bands, because land differs little between the visible bands: (mean - 0.1) / 0.1,
 * (red - green) / 0.1, (green - blue) / 0.1.
 */
export const rgbNormalisation: LayerSpec = {
  type: 'mix',
  weights: [
    [10 / 3, 10, 0],
    [10 / 3, -10, 10],
    [10 / 3, 0, -10],
  ],
  bias: [-1, 0, 0],
};

/** Pixels around a pixel of a map that can change its value: at least the radius of the receptive field of the networks. */
export const RECEPTIVE_MARGIN = 24;

export const poolingFactor = ({ layers }: Pick<ModelSpec, 'layers'>): number =>
  2 ** layers.filter(({ type }) => type === 'down').length;

/** Returns the distance up to which pixels change a value: for a map in whole windows of the pooling, for a mean the side of its patch. */
export function receptiveField({ target, patchSize, layers }: ModelSpec): number {
  return target.kind === 'mean' ? patchSize : RECEPTIVE_MARGIN + poolingFactor({ layers });
}

/** Side of the smallest patch, in pixels: a multiple of the pooling of all networks, and wide enough for a discriminator. */
const MIN_PATCH_SIZE = 16;

/**
 * Returns the specification with each size of patches that a cell may use, the largest first: pixels at the edges of a patch have less
 * context. Sizes are halves of each other, so that patches of several cells can be divided into those of the smallest size. The number of
 * pixels stays the same. A network for means has one size.
 */
export function withPatchSizes(spec: ModelSpec): ModelSpec[] {
  if (spec.target.kind === 'mean') return [spec];
  const halves = Math.floor(Math.log2(spec.patchSize / MIN_PATCH_SIZE));
  return Array.from({ length: 1 + Math.max(0, halves) }, (_, i) => ({
    ...spec,
    patchSize: spec.patchSize / 2 ** i,
    maxPatches: spec.maxPatches * 4 ** i,
  }));
}
