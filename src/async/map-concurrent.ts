/**
 * Calls `work` on every item, at most `concurrency` at a time, and returns the results in the order of the items. After an error, no
 * further item is started. The first error is thrown once all started work has ended, so that the caller can clean up.
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
      const index = next++;
      try {
        results[index] = await work(items[index]);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  if (errors.length > 0) throw errors[0];
  return results;
}
