/**
 * The first rows in an order, up to a limit, of those that are offered.
 * Invariant: once there are as many rows as the limit, `kept` is a binary heap: each row comes after the two that it holds
 * at twice its place, so that the last of all is at the top.
 */
export class TopK {
  private readonly heap: number[] = [];

  /** `compare` is negative where the first row comes before the second one. */
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

  /** In their order. */
  rows(): number[] {
    return this.heap.toSorted(this.compare);
  }

  /** Puts a row in a place of the heap or further down. */
  private sink(row: number, place: number): void {
    const { heap, compare } = this;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && compare(heap[child + 1], heap[child]) > 0) child++;
      if (compare(heap[child], row) <= 0) break;
      heap[place] = heap[child];
      place = child;
    }
    heap[place] = row;
  }
}
