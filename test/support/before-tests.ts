/**
 * Awaits what a file needs before it can register its tests. The test runner of Node ends a file when the event loop has nothing to wait for,
 * and imports and compilations are not always among that: a timer keeps the file from ending.
 */
export async function beforeTests<T>(needed: Promise<T>): Promise<T> {
  const alive = setInterval(() => undefined, 1000);
  return needed.finally(() => clearInterval(alive));
}
