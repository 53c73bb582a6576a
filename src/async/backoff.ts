import { setTimeout as sleep } from 'node:timers/promises';

/** Waits a random time. Its maximum is 20 ms for the first try, doubles with every try, and ends at `longest` ms. */
export async function backOff(tries: number, longest = 320): Promise<void> {
  await sleep(Math.random() * Math.min(20 * 2 ** tries, longest));
}
