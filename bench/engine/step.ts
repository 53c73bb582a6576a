/** node step.js ENGINE NET STEPS: the CPU time of a training step, as JSON; a process of its own for each engine. */
import { type EngineName, loadEngine } from '../../src/training/engine/load-engine.js';
import { median } from '../bench.js';
import { NETS, type NetName, netNamed } from './nets.js';

/** Primitives are made and code is compiled in the first. */
const WARM = 3;

const [engine, net, steps] = process.argv.slice(2) as [EngineName, NetName, string];
const { tf, version } = await loadEngine(engine);
const model = netNamed(tf, net);
model.compile({ optimizer: tf.train.adam(1e-3), loss: 'meanSquaredError' });
const { input, target } = NETS[net];
const x = tf.randomUniform([...input], 0, 1, 'float32', 1);
const y = tf.randomUniform([...target], 0, 1, 'float32', 2);
const times: number[] = [];
for (let step = 0; step < WARM + Number(steps); step++) {
  const before = process.cpuUsage();
  await model.trainOnBatch(x, y);
  const { user, system } = process.cpuUsage(before);
  if (step >= WARM) times.push((user + system) / 1e3);
}
const rss = Math.round(process.resourceUsage().maxRSS / 1024);
process.stdout.write(JSON.stringify({ milliseconds: median(times), version, rss }), () => process.exit(0));
