/**
 * Learners train a model batch by batch: by regression, or against a discriminator. They use Adam, gradients that can be reduced over
 * nodes, and schedules of learning rates and of frozen layers.
 */
import type { NamedTensorMap, Scalar, Tensor, Tensor4D, Variable } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import { adamStep, type CapturedKernels, captureKernels, type Tf } from '../engines/index.js';
import type { Batch } from './batches.js';
import type { ModelSpec } from './models/spec.js';

interface StepOptions {
  learningRate: number;
  /** Number of the step, from 1. */
  step: number;
  /** Replaces local gradients by their weighted mean over all nodes. Disposes the tensors passed in. */
  reduceGradients?: (gradients: Tensor[]) => Promise<Tensor[]>;
}

export interface Learner {
  /** The model that is saved in the end. */
  readonly model: LayersModel;
  /** Updates the weights by one batch, and resolves to the loss before the update. */
  step(batch: Batch, options: StepOptions): Promise<number>;
  /** Trains only the layers with these names from now on, or all layers without names. Step numbers restart. */
  setTrainableLayers(layers?: string[]): void;
  /** All variables that later steps depend on, in an order that is fixed for the same trainable layers. */
  stateVariables(): Variable[];
  /** Disposes everything except the model. */
  dispose(): void;
}

/** Returns the layers with trainable weights. */
function trainableLayers(model: LayersModel): LayersModel['layers'] {
  return model.layers.filter((layer) => layer.trainable && layer.weights.length > 0);
}

/** Freezes all layers except those with these names; without names, none. */
function freezeAllExcept(layers: LayersModel['layers'], names?: string[]): void {
  for (const layer of layers) layer.trainable = names?.includes(layer.name) ?? true;
}

/** Returns the variables of weights, trainable or not. */
export function asVariables(weights: LayersModel['weights']): Variable[] {
  return weights.map((weight) => weight.read() as Variable);
}

interface AdamOptions {
  beta1?: number;
  /** L2 penalty: the gradient of half this times the squared weights is added to the gradient of the loss. */
  weightDecay?: number;
}

const ADAM_BETA2 = 0.999;
const ADAM_EPSILON = 1e-7;

/**
 * Adam (Kingma and Ba 2015, algorithm 1). Its complete state can be saved and restored. Invariant: `moments` has the first and the second
 * moment of each variable, in the order of the variables.
 */
export class Adam {
  readonly moments: Variable[];

  constructor(
    private readonly tf: Tf,
    readonly variables: Variable[],
    private readonly options: AdamOptions = {},
  ) {
    this.moments = variables.flatMap(({ shape }) =>
      [0, 1].map(() => tf.tidy(() => tf.variable(tf.zeros(shape), false))),
    );
  }

  /**
   * Moves the variables by one step against the gradients of a loss, and resolves to the loss before the step. Disposes the loss and the
   * gradients.
   */
  async minimiseStep(
    { value, gradients: local }: LossAndGradients,
    { learningRate, step, reduceGradients }: StepOptions,
  ): Promise<number> {
    const gradients = reduceGradients ? await reduceGradients(local) : local;
    this.apply(gradients, learningRate, step);
    const [before] = await value.data();
    this.tf.dispose([value, ...gradients]);
    return before;
  }

  private apply(gradients: Tensor[], rate: number, step: number): void {
    const { tf } = this;
    const { beta1 = 0.9, weightDecay = 0 } = this.options;
    // Bias corrections of both moments.
    const correction = Math.sqrt(1 - ADAM_BETA2 ** step);
    const numbers = {
      beta1,
      beta2: ADAM_BETA2,
      decay: weightDecay,
      rate: (rate * correction) / (1 - beta1 ** step),
      epsilon: ADAM_EPSILON * correction,
    };
    this.variables.forEach((variable, i) => {
      const [first, second] = this.moments.slice(2 * i, 2 * i + 2);
      const tensors = { variable, gradient: gradients[i], first, second };
      const moved = adamStep(tf, tensors, numbers);
      [variable, first, second].forEach((one, k) => {
        one.assign(moved[k]);
      });
      tf.dispose(moved);
    });
  }

  dispose(): void {
    this.tf.dispose(this.moments);
  }
}

/** The gradients are in the order of the variables. The caller must dispose all tensors. */
interface LossAndGradients {
  value: Tensor;
  gradients: Tensor[];
}

export function lossAndGradients(tf: Tf, variables: Variable[], loss: () => Tensor): LossAndGradients {
  const { value, grads } = tf.variableGrads(loss as () => Scalar, variables);
  return { value, gradients: variables.map(({ name }) => (grads as NamedTensorMap)[name]) };
}

/**
 * Computes loss and gradients for consecutive batches. `loss` may depend only on the batch and on `state`, which includes the variables;
 * on the WASM backend it is called only once for batches of the same size, and its kernel calls are replayed afterwards. Invariant:
 * `captures` has an entry for each size so far, null if it cannot be replayed.
 */
export class BatchGradients {
  private readonly captures = new Map<number, CapturedKernels | null>();

  constructor(
    private readonly tf: Tf,
    private readonly variables: Variable[],
    private readonly state: Variable[],
    private readonly loss: (batch: Batch) => Tensor,
  ) {}

  of(batch: Batch): LossAndGradients {
    const plain = () => lossAndGradients(this.tf, this.variables, () => this.loss(batch));
    const { size, inputs, targets, counts, cloud } = batch;
    const replay = this.tf.getBackend() === 'wasm' ? this.captures.get(size) : null;
    if (replay === null) return plain();
    const tensors = [inputs, targets, counts, cloud].filter((tensor) => tensor !== undefined);
    const given = [...tensors, ...this.state];
    if (replay) return lossGradients(replay.replay(given));
    const recorded = captureKernels(this.tf, given, () => {
      const { value, gradients } = plain();
      return [value, ...gradients];
    });
    this.captures.set(size, recorded.replay);
    return lossGradients(recorded.outputs);
  }

  dispose(): void {
    for (const replay of this.captures.values()) replay?.dispose();
  }
}

const lossGradients = ([value, ...gradients]: Tensor[]): LossAndGradients => ({ value, gradients });

/** Statistics that batch normalisation uses in a step: those of the batch, or the moving averages of the model, which stay as they are. */
export type BatchNormStatistics = 'batch' | 'moving';

/** Trains with the mean squared error over the pixels that count. */
export function regressionLearner(
  tf: Tf,
  model: LayersModel,
  statistics: BatchNormStatistics = 'batch',
): Learner {
  const layers = trainableLayers(model);
  const begin = (names?: string[]) => {
    freezeAllExcept(layers, names);
    const adam = new Adam(tf, asVariables(model.trainableWeights));
    const loss = ({ inputs, targets, counts }: Batch) => {
      const squares = tf.square(
        tf.sub(model.apply(inputs, { training: statistics === 'batch' }) as Tensor, targets),
      );
      return maskedMean(tf, squares, counts);
    };
    return { adam, gradients: new BatchGradients(tf, adam.variables, asVariables(model.weights), loss) };
  };
  let { adam, gradients } = begin();
  const end = () => {
    gradients.dispose();
    adam.dispose();
  };
  return {
    model,
    step: (batch, options) => adam.minimiseStep(gradients.of(batch), options),
    setTrainableLayers(names) {
      end();
      ({ adam, gradients } = begin(names));
    },
    stateVariables: () => [...asVariables(model.weights), ...adam.moments],
    dispose() {
      end();
      freezeAllExcept(layers);
    },
  };
}

/** Returns the mean over all channels of the pixels that count. */
function maskedMean(tf: Tf, values: Tensor, counts?: Tensor): Scalar {
  if (!counts) return tf.mean(values);
  const channels = values.shape.at(-1)!;
  return tf.div(tf.sum(tf.mul(values, counts)), tf.mul(tf.sum(counts), channels));
}

const L1_WEIGHT = 100;
const GAN_ADAM = { beta1: 0.5, weightDecay: 1e-5 };

/**
 * Adversarial training as in SpA-GAN (Pan 2020): the generator minimises mean softplus(-D(fake)) + 100 x L1(fake, clear) + MSE(attention,
 * cloud), the discriminator mean softplus(D(fake)) + mean softplus(-D(clear)).
 */
export function ganLearner(tf: Tf, generator: LayersModel, discriminator: LayersModel): Learner {
  const layers = trainableLayers(generator);
  let generatorAdam = new Adam(tf, asVariables(generator.trainableWeights), GAN_ADAM);
  let discriminatorAdam = new Adam(tf, asVariables(discriminator.trainableWeights), GAN_ADAM);
  const discriminate = (batch: Batch, candidate: Tensor) =>
    discriminator.apply([dateOf(tf, batch), candidate as Tensor4D], { training: true }) as Tensor;
  return {
    model: generator,
    async step(batch, options) {
      const { inputs, targets, counts, cloud } = batch;
      let fake: Tensor | undefined;
      const generatorLoss = lossAndGradients(tf, generatorAdam.variables, () => {
        const [made, attention] = generator.apply(inputs, { training: true }) as Tensor[];
        fake = tf.keep(composited(tf, batch, made));
        const adversarial = tf.mean(tf.softplus(tf.neg(discriminate(batch, fake))));
        const distance = maskedMean(tf, tf.abs(tf.sub(made, targets)), counts);
        const attentionLoss = maskedMean(tf, tf.square(tf.sub(attention, cloud!)), counts);
        return tf.add(tf.add(adversarial, tf.mul(distance, L1_WEIGHT)), attentionLoss);
      });
      const loss = await generatorAdam.minimiseStep(generatorLoss, options);
      const real = tf.tidy(() => composited(tf, batch, targets));
      const discriminatorLoss = lossAndGradients(tf, discriminatorAdam.variables, () =>
        tf.add(
          tf.mean(tf.softplus(discriminate(batch, fake!))),
          tf.mean(tf.softplus(tf.neg(discriminate(batch, real)))),
        ),
      );
      await discriminatorAdam.minimiseStep(discriminatorLoss, options);
      tf.dispose([fake!, real]);
      return loss;
    },
    setTrainableLayers(names) {
      generatorAdam.dispose();
      discriminatorAdam.dispose();
      freezeAllExcept(layers, names);
      generatorAdam = new Adam(tf, asVariables(generator.trainableWeights), GAN_ADAM);
      discriminatorAdam = new Adam(tf, asVariables(discriminator.trainableWeights), GAN_ADAM);
    },
    stateVariables: () => [
      ...asVariables(generator.weights),
      ...asVariables(discriminator.weights),
      ...generatorAdam.moments,
      ...discriminatorAdam.moments,
    ],
    dispose() {
      generatorAdam.dispose();
      discriminatorAdam.dispose();
      discriminator.dispose();
      freezeAllExcept(layers);
    },
  };
}

/** Replaces pixels without a known clear value by those of the date, so that they contain no information for the discriminator. */
function composited(tf: Tf, batch: Batch, image: Tensor): Tensor {
  const counts = batch.counts!;
  return tf.add(tf.mul(image, counts), tf.mul(dateOf(tf, batch), tf.sub(1, counts)));
}

/** Returns the bands of the date with its clouds replaced, without the other planes. */
function dateOf(tf: Tf, { inputs, targets }: Batch): Tensor4D {
  return tf.slice(inputs, [0, 0, 0, 0], targets.shape as Tensor4D['shape']);
}

/**
 * Fraction of the steps used for learning-rate warm-up when fine-tuning, counted separately for each phase of a schedule. A full learning
 * rate from the first step would destroy the pretrained weights.
 */
export const WARMUP_FRACTION = 1 / 2;

/** Learning rate of a step (from 0) out of `steps`: it falls to zero along half a cosine. */
export function cosineLearningRate({ learningRate }: ModelSpec, step: number, steps: number): number {
  return 0.5 * learningRate * (1 + Math.cos((Math.PI * step) / steps));
}

/**
 * The layers that are trained if a model starts from that of another cell. `all`: all layers from the start. `head`: only the last layers,
 * on the features of the other cell. `gradual`: only the last layers for a third of the epochs, then all.
 */
export const FREEZING_SCHEDULES = ['all', 'head', 'gradual'] as const;
export type FreezingSchedule = (typeof FREEZING_SCHEDULES)[number];

/** Returns the number of epochs in which only the last layers are trained. */
export function headOnlyEpochs(schedule: FreezingSchedule, epochs: number): number {
  return { all: 0, head: epochs, gradual: Math.round(epochs / 3) }[schedule];
}

export function headLayerNames({ headLayers }: ModelSpec, model: LayersModel): string[] {
  return trainableLayers(model)
    .slice(-headLayers)
    .map(({ name }) => name);
}
