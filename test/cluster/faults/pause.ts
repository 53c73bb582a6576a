import type { Fault } from './fault.js';

export const pause: Fault = {
  name: 'pause',
  what: 'the process of a node stands still (SIGSTOP), and goes on later as if nothing had been',
  async begin(_cluster, { server }) {
    server.pause();
    return async () => server.resume();
  },
};
