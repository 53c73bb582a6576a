import type { Fault } from './fault.js';

const SECOND = 1000;

export const clock: Fault = {
  name: 'clock',
  what: 'the clock of a node jumps by seconds, minutes or a day, forwards or backwards, and is corrected later',
  async begin({ settings }, { server, name }, random) {
    const step = random.pick([-86_400, -600, -20, 20, 600, 86_400]) * SECOND;
    settings.history.note(`the clock of ${name} jumps by ${step} ms`);
    server.disturb({ clock: step });
    return async () => server.disturb({});
  },
};
