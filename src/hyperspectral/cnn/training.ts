/**
 * Trains a network on labelled pixels by Adam, on all runs of a job together. A step uses some groups of pixels of all tiles. Each
 * run computes and sends the gradients of its own groups, and all runs add all gradients in the order of the groups. The weights thus have
 * the same bits on any distribution of the tiles.
 */
import type { JobContext } from '../../jobs/index.js';
import { fromFloat16, toFloat16 } from '../../utils/float16.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { randomStream, shuffledOrder } from '../../utils/random.js';
import { allGatherChecked } from '../analysis.js';
import { netFailed } from '../errors.js';
import { mayTrain } from '../labelled-pixels.js';
import { AdamW } from '../optimizers.js';
import { BYTES_PER_VALUE } from '../samples.js';
import type { GroupGradient } from './compute.js';
import { NET_SETTINGS } from './net.js';
import type { NetSession } from './session.js';

interface NetTraining {
  training: number;
  epochs: number;
  /** Weight decay. */
  strength: number;
  seed: number;
}

export interface TrainedNet {
  weights: Float32Array;
  steps: number;
  /** Steps that were skipped because a gradient exceeded float16. */
  overflows: number;
  /** Bytes of the gradients of all groups. */
  bytes: number;
  /** Labelled pixels that trained it. */
  pixels: number;
}

/** Approximate number of steps of an epoch. */
const STEPS_PER_EPOCH = 64;
/** Limit of the groups of a step. */
const MAX_GROUPS = 16;
/** Share of the steps over which the learning rate rises; then it falls. */
const WARMUP_FRACTION = 0.3;
/** Initial factor of the loss, so that small gradients do not vanish in float16. */
const INITIAL_LOSS_SCALE = 2 ** 4;
/** Number of steps without overflow after which the factor is doubled. */
const STEPS_TO_DOUBLE = 200;

const checkGradients = messageCheck(
  objectOf({ groups: listOf(COUNT), losses: listOf(NUMBER), values: TEXT }),
);

/** Throws TW_ANALYSIS_NET. */
export async function trainNet(
  session: NetSession,
  { training, epochs, strength, seed }: NetTraining,
  job: JobContext,
): Promise<TrainedNet> {
  const groups = session.groups.filter(({ near }) => mayTrain(near, training));
  const { next } = randomStream(seed);
  const weights = startOf(session.parameters, next);
  const adam = new AdamW(weights, strength);
  const { name } = session.shape;
  const atOnce = Math.min(MAX_GROUPS, Math.ceil(groups.length / STEPS_PER_EPOCH));
  const stepsAnEpoch = Math.ceil(groups.length / atOnce);
  const isMixed = session.precision === 'mixed';
  const pixels = groups.reduce((sum, group) => sum + group.pixels, 0);
  const trained: TrainedNet = { weights, steps: 0, overflows: 0, bytes: 0, pixels };
  let scale = isMixed ? INITIAL_LOSS_SCALE : 1;
  let good = 0;
  for (let epoch = 1; epoch <= epochs; epoch++) {
    const order = Array.from(shuffledOrder(groups.length, next));
    let loss = 0;
    for (let step = 0; step < stepsAnEpoch; step++) {
      job.signal.throwIfAborted();
      const chosen = order.slice(step * atOnce, (step + 1) * atOnce);
      const found = await gradientsOf(session, weights, { groups, chosen, scale }, job);
      trained.steps++;
      trained.bytes += chosen.length * weights.length * BYTES_PER_VALUE[session.precision];
      const pixels = chosen.reduce((sum, g) => sum + groups[g].pixels, 0);
      const sum = new Float64Array(weights.length);
      for (const { gradient, loss: own } of found) {
        loss += own;
        for (let i = 0; i < sum.length; i++) sum[i] += gradient[i];
      }
      const overflows = !sum.every(Number.isFinite);
      if (overflows && !isMixed) throw diverged();
      if (overflows) {
        trained.overflows++;
        scale /= 2;
        good = 0;
        continue;
      }
      for (let i = 0; i < sum.length; i++) sum[i] /= pixels * scale;
      adam.step(
        sum,
        NET_SETTINGS[name].rate * triangularLearningRate((trained.steps - 0.5) / (epochs * stepsAnEpoch)),
      );
      if (isMixed && ++good % STEPS_TO_DOUBLE === 0) scale *= 2;
    }
    job.message(`training ${name}: epoch ${epoch} of ${epochs}, loss ${(loss / pixels).toFixed(4)}`);
  }
  return trained;
}

/** Collects the gradients of the chosen groups, in their order, from the runs of their tiles. Gradients are of the loss times the scale. */
async function gradientsOf(
  session: NetSession,
  weights: Float32Array,
  { groups, chosen, scale }: { groups: NetSession['groups']; chosen: readonly number[]; scale: number },
  job: JobContext,
): Promise<GroupGradient[]> {
  const isMixed = session.precision === 'mixed';
  const own = chosen.filter((g) => groups[g].own);
  const found = await session.gradients(
    weights,
    own.map((g) => groups[g].own!),
  );
  if (found.some(({ loss }) => !Number.isFinite(loss))) throw diverged();
  const values = found.map(({ gradient }) => {
    const sent = isMixed ? toFloat16(gradient.map((value) => value * scale)) : gradient;
    return Buffer.from(sent.buffer, sent.byteOffset, sent.byteLength);
  });
  const message = {
    groups: own,
    losses: found.map(({ loss }) => loss),
    values: Buffer.concat(values).toString('base64'),
  };
  const all = new Map<number, GroupGradient>();
  const length = BYTES_PER_VALUE[session.precision] * weights.length;
  for (const { groups, losses, values } of await allGatherChecked(job, message, checkGradients)) {
    const { buffer } = Uint8Array.from(Buffer.from(values, 'base64'));
    if (buffer.byteLength !== groups.length * length || losses.length !== groups.length)
      throw new Error('another node has sent gradients of another size');
    for (const [i, g] of groups.entries()) {
      const bytes = buffer.slice(i * length, (i + 1) * length);
      const gradient = isMixed ? fromFloat16(new Uint16Array(bytes)) : new Float32Array(bytes);
      all.set(g, { loss: losses[i], gradient });
    }
  }
  return chosen.map((g) => {
    const one = all.get(g);
    if (!one) throw new Error('no node has sent the gradient of a group');
    return one;
  });
}

const diverged = () => netFailed('its training diverged; some pixels may have extreme values');

/** Uniform weights (He et al. 2015), and biases of 0. */
function startOf(parameters: NetSession['parameters'], next: () => number): Float32Array {
  const weights = new Float32Array(parameters.reduce((sum, { size }) => sum + size, 0));
  let at = 0;
  for (const { size, inputs } of parameters) {
    const most = inputs === 0 ? 0 : Math.sqrt(6 / inputs);
    for (const end = at + size; at < end; at++) if (most > 0) weights[at] = most * (2 * next() - 1);
  }
  return weights;
}

/** Rises linearly from 0 to 1 and falls linearly to 0 (Smith 2018). `share`: share of the steps that are done. */
function triangularLearningRate(share: number): number {
  return share < WARMUP_FRACTION ? share / WARMUP_FRACTION : (1 - share) / (1 - WARMUP_FRACTION);
}
