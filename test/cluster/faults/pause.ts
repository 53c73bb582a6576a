import type { Fault } from './fault.js';

export const pause: Fault = {
  name: 'pause',
  what: 'the process of a node is paused (SIGSTOP), and continues later',
  async begin(_cluster, { server }) {
    server.pause();
    return async () => server.resume();
  },
};
