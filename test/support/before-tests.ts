/**
 * Awaits what a file needs before it can register its tests. The test runner of Node ends a file when nothing keeps the event loop alive,
 * and imports and compilations do not always do so: a timer does.
 */
export async function beforeTests<T>(needed: Promise<T>): Promise<T> {
  const alive = setInterval(() => undefined, 1000);
  return needed.finally(() => clearInterval(alive));
}
