import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until `check` returns a truthy value, and returns it. Throws after a time limit. */
export async function eventually<T>(
  what: string,
  check: () => T | Promise<T>,
  limit = 15_000,
): Promise<NonNullable<T>> {
  const deadline = performance.now() + limit;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (performance.now() > deadline) throw new Error(`not within ${limit} ms: ${what}`);
    await sleep(20);
  }
}
