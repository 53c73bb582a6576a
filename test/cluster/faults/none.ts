import type { Fault } from './fault.js';

export const none: Fault = {
  name: 'none',
  what: 'no fault',
  begin: async () => async () => undefined,
};
