import { after, type TestContext } from 'node:test';

type Ending = () => unknown;

const endings = new WeakMap<object, Ending[]>();

/**
 * Runs work after the test, in reverse order of registration, so that a server stops before its folder is removed. All of it is
 * run, even if some of it fails.
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

/** Stands for the context of a test where all tests of a suite share resources: runs the work after the last of them. */
export function suiteContext(): Pick<TestContext, 'after'> {
  const all: Ending[] = [];
  // The hook is registered while the suite is defined; a `before` hook cannot register one.
  after(async () => {
    for (const work of all) await work();
  });
  return { after: (work) => void all.push(work as Ending) };
}
