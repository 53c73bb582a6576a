/** Everything an async iterable gives. (`Array.fromAsync` is not in Node 20.) */
export async function toArray<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
