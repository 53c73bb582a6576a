import type { TestContext } from 'node:test';

type Ending = () => unknown;

const endings = new WeakMap<object, Ending[]>();

/**
 * Has work done when the test has ended, the last that was registered first: a server is gone before its folder is removed. All of it is
 * done, also where some fails.
 */
export function atEnd(t: Pick<TestContext, 'after'>, work: Ending): void {
  const known = endings.get(t);
  if (known) {
    known.push(work);
    return;
  }
  const all = [work];
  endings.set(t, all);
  t.after(async () => {
    const errors: unknown[] = [];
    for (const one of all.toReversed())
      try {
        await one();
      } catch (error) {
        errors.push(error);
      }
    if (errors.length > 0) throw errors[0];
  });
}
