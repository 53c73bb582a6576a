/**
 * The self-test must refuse an engine if any kernel that training, prediction or analysis runs is broken. The kernels are found by running
 * each network, so a new one whose kernel the self-test lacks fails here.
 */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { KernelConfig, KernelFunc, Tensor, TensorInfo } from '@tensorflow/tfjs-core';
import { type EngineName, loadEngine } from '../../src/engines/load.js';
import { selfTest } from '../../src/engines/self-test.js';
import type { Tf } from '../../src/engines/tfjs.js';
import { GROUP, NetCompute } from '../../src/hyperspectral/cnn/compute.js';
import { NET_SETTINGS, NETS, storedNet } from '../../src/hyperspectral/cnn/net.js';
import { BUILTIN_MODELS } from '../../src/training/models/builtin.js';
import { freshLearner } from '../training/model-steps.js';

type Given = Parameters<KernelFunc>[0];

/** A kernel with those of its attributes for which engines have separate code. */
interface Variant {
  kernel: string;
  /** Maximum number of its results. */
  outputs: number;
}

/** Ways in which a broken kernel changes its result. */
const FAULTS: Record<string, (values: Float32Array) => void> = {
  'times -3'(values) {
    for (const [i, value] of values.entries()) values[i] = value === 0 ? 1 : -3 * value;
  },
  // Not the value of largest magnitude, which a ReLU may remove.
  'largest value 10 % off'(values) {
    const largest = values.reduce((best, value, i) => (value > values[best]! ? i : best), 0);
    values[largest] = values[largest] === 0 ? 0.1 : 1.1 * values[largest]!;
  },
  'not a number': (values) => values.fill(NaN),
};

export function selfTestContract(name: EngineName): void {
  describe(`self-test of ${name}`, () => {
    let tf: Tf;
    before(async () => {
      ({ tf } = await loadEngine(name));
    });

    it('refuses each kernel that training, prediction and analysis run, if it is broken', async () => {
      const used = await recorded(tf, () => runNetworks(tf));
      assert.ok(used.size > 20, `${used.size} kernels`);
      const missed: string[] = [];
      for (const [variant, { kernel, outputs }] of used)
        for (const [fault, spoil] of Object.entries(FAULTS))
          for (let output = 0; output < outputs; output++) {
            const restore = broken(tf, kernel, variant, output, spoil);
            const { passed, error } = await selfTest(tf);
            restore();
            if (passed) missed.push(`${variant}, output ${output}, ${fault}: error ${error}`);
          }
      assert.deepEqual(missed, []);
      assert.ok((await selfTest(tf)).passed);
    });
  });
}

/** A step of training and a prediction of each model, and all computations of each network of the analyses. */
async function runNetworks(tf: Tf): Promise<void> {
  for (const spec of BUILTIN_MODELS) {
    const { learner, batch } = freshLearner(tf, spec);
    await learner.step(batch, { learningRate: spec.learningRate, step: 1 });
    learner.model.predict(batch.inputs);
  }
  const [bands, classes] = [112, 3];
  for (const name of NETS) {
    const shape = { name, bands, classes };
    const pixels = Int32Array.from({ length: GROUP }, (_, i) => i);
    const { side } = NET_SETTINGS[name];
    const compute = new NetCompute(tf, shape);
    compute.holdTiles([
      {
        spectra: Float32Array.from({ length: GROUP * bands }, (_, i) => Math.sin(i)),
        patches: Int32Array.from({ length: GROUP * side * side }, (_, i) => i % GROUP),
        classes: Uint8Array.from(pixels, (i) => i % classes),
      } as never,
    ]);
    const group = { tile: 0, pixels };
    compute.gradientOf(group);
    compute.camsOf(group);
    const standard = { centre: new Float64Array(bands), deviation: new Float64Array(bands).fill(1) };
    const { model } = storedNet(tf, shape, standard as never);
    model.predict(tf.ones(side === 1 ? [1, bands] : [1, side, side, bands]));
  }
}

/** The kernels that run in the meantime, at any depth. */
async function recorded(tf: Tf, run: () => Promise<void>): Promise<Map<string, Variant>> {
  const used = new Map<string, Variant>();
  const restored = tf.getKernelsForBackend(tf.getBackend()).map((config) =>
    replaced(config, (stock) => (given) => {
      const made = stock(given);
      const { kernelName: kernel } = config;
      const variant = variantOf(kernel, given);
      const known = used.get(variant)?.outputs ?? 0;
      used.set(variant, { kernel, outputs: Math.max(known, [made].flat().length) });
      return made;
    }),
  );
  await run();
  for (const restore of restored) restore();
  return used;
}

function variantOf(kernel: string, { attrs = {} }: Given): string {
  const { dilations = 1, strides = 1, activation, transposeA, transposeB } = attrs as Record<string, never>;
  const isMore = (values: number | number[]) => [values].flat().some((value) => value > 1);
  const words = [
    isMore(dilations) && 'dilated',
    isMore(strides) && 'strided',
    activation !== 'linear' && activation,
    transposeA && 'of transposed a',
    transposeB && 'of transposed b',
  ];
  return [kernel, ...words.filter(Boolean)].join(' ');
}

function broken(
  tf: Tf,
  kernel: string,
  variant: string,
  output: number,
  spoil: (values: Float32Array) => void,
): () => void {
  return replaced(tf.getKernel(kernel, tf.getBackend())!, (stock) => (given) => {
    const made = stock(given);
    if (variantOf(kernel, given) !== variant) return made;
    const outputs = [made].flat();
    const at = output % outputs.length;
    outputs[at] = spoiled(tf, outputs[at]!, spoil);
    return Array.isArray(made) ? outputs : outputs[0]!;
  });
}

function spoiled(
  tf: Tf,
  { dataId, shape, dtype }: TensorInfo,
  spoil: (values: Float32Array) => void,
): Tensor {
  const sound = Float32Array.from(tf.backend().readSync(dataId) as Float32Array);
  const values = sound.slice();
  spoil(values);
  // The only wrong truth value is the opposite one.
  if (dtype === 'bool')
    for (const [i, value] of sound.entries())
      values[i] = Number(Object.is(values[i], value) === (value === 1));
  return tf.tensor(values, shape, dtype as 'float32');
}

function replaced(config: KernelConfig, make: (stock: KernelFunc) => KernelFunc): () => void {
  const { kernelFunc } = config;
  config.kernelFunc = make(kernelFunc);
  return () => {
    config.kernelFunc = kernelFunc;
  };
}
