import type { Fault } from './fault.js';

/** The process of a node is paused (SIGSTOP), and continues later. */
const begin: Fault['begin'] = async (_cluster, { server }) => {
  server.pause();
  return async () => server.resume();
};

export const pause: Fault = {
  name: 'pause',
  what: 'the process of a node is paused (SIGSTOP), and continues later',
  begin,
};

/** Others take over its slots and jobs by then. */
export const longPause: Fault = {
  name: 'long-pause',
  what: 'the process of a node is paused for 50 to 100 s',
  lastsMs: [50_000, 100_000],
  begin,
};
