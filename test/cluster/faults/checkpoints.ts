import type { Fault } from './fault.js';

/** Latency of the store while checkpoints are written, ms: commits arrive faster than one is written. */
const LATENCY = 40;

export const checkpoints: Fault = {
  name: 'checkpoints',
  what: 'checkpoints and sweeps of a slow store run all the time, while writers commit steadily',
  isHarmless: true,
  storeLatency: LATENCY,
  begin: async () => async () => undefined,
};
