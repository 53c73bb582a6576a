/**
 * Does `work` on every item, at most `lanes` at a time, and gives the results in order. After an error nothing new begins;
 * the error is thrown when all that had begun has ended, so that the caller may clean up after it.
 */
export async function mapConcurrent<Item, Result>(
  items: Item[],
  concurrency: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = new Array(items.length);
  const errors: unknown[] = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length && errors.length === 0) {
      const at = next++;
      try {
        results[at] = await work(items[at]);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  if (errors.length > 0) throw errors[0];
  return results;
}
