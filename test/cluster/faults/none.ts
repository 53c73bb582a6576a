import type { Fault } from './fault.js';

export const none: Fault = {
  name: 'none',
  what: 'nothing goes wrong',
  begin: async () => async () => undefined,
};
