/** node step.js ENGINE NET STEPS: the CPU time of a training step, as JSON; a process of its own for each engine. */
import { type EngineName, loadEngine } from '../../src/engines/load.js';
import { median } from '../support/bench.js';
import { batchFor, learnerNamed, type NetName } from './nets.js';

/** Primitives are made in the first step, and Node compiles code in the background for about ten. */
const WARM_UP_STEPS = 15;

const [engine, net, steps] = process.argv.slice(2) as [EngineName, NetName, string];
const { tf, version } = await loadEngine(engine);
const learner = learnerNamed(tf, net);
const batch = batchFor(tf, net);
const times: number[] = [];
for (let step = 1; step <= WARM_UP_STEPS + Number(steps); step++) {
  const before = process.cpuUsage();
  await learner.step(batch, { learningRate: 1e-3, step });
  const { user, system } = process.cpuUsage(before);
  if (step > WARM_UP_STEPS) times.push((user + system) / 1e3);
}
const rss = Math.round(process.resourceUsage().maxRSS / 1024);
process.stdout.write(JSON.stringify({ milliseconds: median(times), version, rss }), () => process.exit(0));
