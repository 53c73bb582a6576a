import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './fault.js';

/** Lengths of the outage after a lost answer, ms; archiving a commit is retried for 60 s. */
const OUTAGES = [0, 300, 3000, 68_000];
const LONG = 60_000;

export const storeAnswers: Fault = {
  name: 'store-answers',
  what: 'the store does what a node asks, but reports an error; it is then away for up to a minute',
  async begin(cluster, target, random) {
    const nodes = random.chance(0.5) ? [...cluster.nodes] : [target];
    const outage = random.pick(OUTAGES);
    cluster.settings.history.note(
      `answers of the store are lost for ${nodes.map(({ name }) => name)}; it is then away for ${outage} ms`,
    );
    const began = performance.now();
    for (const { server, mount } of nodes)
      server.disturb({
        answers: {
          under: mount,
          seed: random.below(2 ** 31),
          share: outage > LONG ? 0.002 : 0.02,
          more: join('catalogue', 'log'),
          outage,
        },
      });
    return async () => {
      // Only then, a commit that could not be archived is given up.
      if (outage > LONG) await sleep(began + outage - performance.now());
      for (const { server } of nodes) server.disturb({});
    };
  },
};
