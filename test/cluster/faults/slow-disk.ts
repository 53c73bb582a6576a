import type { Fault } from './fault.js';

export const slowDisk: Fault = {
  name: 'slow-disk',
  what: 'every operation on the data folder of a node takes longer',
  async begin(_cluster, { server, data }, random) {
    server.disturb({ disk: { under: data, delay: random.between(20, 200) } });
    return async () => server.disturb({});
  },
};
