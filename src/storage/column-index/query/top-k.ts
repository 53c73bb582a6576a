/**
 * The first rows in an order, up to a limit, of those that are offered.
 * Invariant: once there are as many rows as the limit, `kept` is a binary heap: each row comes after the two that it holds
 * at twice its place, so that the last of all is at the top.
 */
export class FirstRows {
  private readonly kept: number[] = [];

  /** `compare` is negative where the first row comes before the second one. */
  constructor(
    private readonly limit: number,
    private readonly compare: (a: number, b: number) => number,
  ) {}

  offer(row: number): void {
    const { kept } = this;
    if (kept.length < this.limit) {
      kept.push(row);
      if (kept.length === this.limit) for (let i = kept.length >> 1; i >= 0; i--) this.sink(kept[i], i);
    } else if (kept.length > 0 && this.compare(row, kept[0]) < 0) this.sink(row, 0);
  }

  /** In their order. */
  rows(): number[] {
    return this.kept.toSorted(this.compare);
  }

  /** Puts a row in a place of the heap or further down. */
  private sink(row: number, place: number): void {
    const { kept, compare } = this;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= kept.length) break;
      if (child + 1 < kept.length && compare(kept[child + 1], kept[child]) > 0) child++;
      if (compare(kept[child], row) <= 0) break;
      kept[place] = kept[child];
      place = child;
    }
    kept[place] = row;
  }
}
