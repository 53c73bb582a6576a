/**
 * Keeps the first rows in an order, up to a limit, of all offered rows.
 * Invariant: when `heap` has as many rows as the limit, it is a binary heap with the last row of the order at the top: row `i`
 * comes after the rows `2i + 1` and `2i + 2`.
 */
export class TopK {
  private readonly heap: number[] = [];

  /** `compare` is negative if the first row comes before the second one. */
  constructor(
    private readonly limit: number,
    private readonly compare: (a: number, b: number) => number,
  ) {}

  offer(row: number): void {
    const { heap } = this;
    if (heap.length < this.limit) {
      heap.push(row);
      if (heap.length === this.limit) for (let i = heap.length >> 1; i >= 0; i--) this.sink(heap[i], i);
    } else if (heap.length > 0 && this.compare(row, heap[0]) < 0) this.sink(row, 0);
  }

  /** The kept rows in order. */
  rows(): number[] {
    return this.heap.toSorted(this.compare);
  }

  /** Puts a row at index `at` of the heap or below it. */
  private sink(row: number, at: number): void {
    const { heap, compare } = this;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && compare(heap[child + 1], heap[child]) > 0) child++;
      if (compare(heap[child], row) <= 0) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = row;
  }
}
