/** All items of an async iterable. (Node 20 lacks `Array.fromAsync`.) */
export async function toArray<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
