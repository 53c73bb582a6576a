import type { Fault } from './fault.js';

export const placement: Fault = {
  name: 'placement',
  what: 'another node joins and drains again, so that slots move during the workload',
  async begin(cluster) {
    const guest = await cluster.addNode();
    return () => cluster.drain(guest);
  },
};
