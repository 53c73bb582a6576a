import { setTimeout as sleep } from 'node:timers/promises';
import { burst } from '../burst.js';
import type { Fault } from './fault.js';

export const bursts: Fault = {
  name: 'burst',
  what: 'many searches are sent to a node at the same moment, repeatedly',
  isHarmless: true,
  async begin(cluster, target, random) {
    const ending = new AbortController();
    const sending = (async () => {
      while (!ending.signal.aborted) {
        await burst(cluster, target, cluster.isSteady);
        await sleep(random.between(200, 1000));
      }
    })();
    return async () => {
      ending.abort();
      await sending;
    };
  },
};
