/** node spectral-net-step.js ENGINE STEPS: prints the median CPU time of a step of cnn1d, ms. */

import { type EngineName, loadEngine } from '../../src/engines/index.js';
import { GROUP, NetCompute } from '../../src/hyperspectral/cnn/compute.js';
import { AdamW } from '../../src/hyperspectral/optimizers.js';
import { randomStream } from '../../src/utils/random.js';
import { median, spend } from '../support/bench.js';

const [engine, steps] = process.argv.slice(2);
const [BANDS, CLASSES, WARM] = [218, 6, 3];

const { tf } = await loadEngine(engine as EngineName);
const compute = new NetCompute(tf, { name: 'cnn1d', bands: BANDS, classes: CLASSES });
const { next } = randomStream(1);
const pixels = Int32Array.from({ length: GROUP }, (_, i) => i);
compute.holdTiles([
  {
    spectra: Float32Array.from({ length: GROUP * BANDS }, () => 2 * next() - 1),
    patches: pixels,
    classes: Uint8Array.from(pixels, (i) => i % CLASSES),
  },
]);
const count = compute.parameters.reduce((sum, { size }) => sum + size, 0);
const adam = new AdamW(
  Float32Array.from({ length: count }, () => 0.2 * (next() - 0.5)),
  1e-3,
);
const step = async () => {
  compute.setWeights(adam.weights);
  const { gradient } = compute.gradientOf({ tile: 0, pixels });
  adam.step(Float64Array.from(gradient), 1e-3 / GROUP);
};
const times: number[] = [];
for (let i = 0; i < WARM + Number(steps); i++) {
  const { cpuSeconds } = await spend(step);
  if (i >= WARM) times.push(cpuSeconds * 1e3);
}
console.log(median(times));
