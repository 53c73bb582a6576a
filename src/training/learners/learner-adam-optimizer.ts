/** Adam (Kingma and Ba 2015, algorithm 1). Its complete state can be saved and restored. */
import type { Tensor, Variable } from '@tensorflow/tfjs-core';
import { adamStep, type Tf } from '../../engines/index.js';
import type { StepOptions } from './learner.js';
import type { LossAndGradients } from './learner-gradients.js';

interface AdamOptions {
  beta1?: number;
  /** L2 penalty: the gradient of half this times the squared weights is added to the gradient of the loss. */
  weightDecay?: number;
}

const BETA2 = 0.999;
const EPSILON = 1e-7;

/** Invariant: `moments` has the first and the second moment of each variable, in the order of the variables. */
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
    const correction = Math.sqrt(1 - BETA2 ** step);
    const numbers = {
      beta1,
      beta2: BETA2,
      decay: weightDecay,
      rate: (rate * correction) / (1 - beta1 ** step),
      epsilon: EPSILON * correction,
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
