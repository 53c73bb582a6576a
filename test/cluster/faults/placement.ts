import type { Fault } from './fault.js';

export const placement: Fault = {
  name: 'placement',
  what: 'another node joins and drains again, so that slots move while the rest happens',
  async begin(cluster) {
    const guest = await cluster.addNode();
    return () => cluster.drain(guest);
  },
};
