import type { Fault } from './fault.js';

export const kill: Fault = {
  name: 'kill',
  what: 'a node is killed, and started again later',
  async begin(_cluster, { server }) {
    await server.stop('SIGKILL');
    return async () => server.start();
  },
};
