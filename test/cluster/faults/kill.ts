import type { Fault } from './fault.js';

export const kill: Fault = {
  name: 'kill',
  what: 'a node is killed, and restarted later',
  async begin(_cluster, { server }) {
    await server.stop('SIGKILL');
    return async () => server.start();
  },
};
