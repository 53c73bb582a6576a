/** Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019), in float64 over float32 weights. */

const BETA_1 = 0.9;
const BETA_2 = 0.999;
const EPSILON = 1e-8;

/**
 * Invariant: `first` and `second` are the decaying sums of all gradients so far and of their squares; `powers` are the powers of the betas.
 */
export class AdamW {
  private readonly first: Float64Array;
  private readonly second: Float64Array;
  private readonly powers = [1, 1];

  constructor(
    readonly weights: Float32Array,
    private readonly decay: number,
  ) {
    this.first = new Float64Array(weights.length);
    this.second = new Float64Array(weights.length);
  }

  step(gradient: Float64Array, rate: number): void {
    const { weights } = this;
    const first = this.first;
    const second = this.second;
    const powers = this.powers;
    powers[0] *= BETA_1;
    powers[1] *= BETA_2;
    for (let i = 0; i < weights.length; i++) {
      const g = gradient[i];
      first[i] = BETA_1 * first[i] + (1 - BETA_1) * g;
      second[i] = BETA_2 * second[i] + (1 - BETA_2) * g * g;
      const move = first[i] / (1 - powers[0]) / (Math.sqrt(second[i] / (1 - powers[1])) + EPSILON);
      weights[i] = weights[i] - rate * (move + this.decay * weights[i]);
    }
  }
}
