/** A histogram of observed values with cumulative bucket counts, as Prometheus expects. */
export class Histogram {
  private readonly counts: number[];
  private total = 0;

  /** `bounds` are the inclusive upper bounds of the buckets, ascending. A last bucket without an upper bound is added. */
  constructor(readonly bounds: readonly number[]) {
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    const bucket = this.bounds.findIndex((bound) => value <= bound);
    this.counts[bucket < 0 ? this.bounds.length : bucket]!++;
    this.total += value;
  }

  /** For each bound the number of values up to it; the last element is the total count. */
  get cumulative(): number[] {
    let sum = 0;
    return this.counts.map((count) => {
      sum += count;
      return sum;
    });
  }

  get sum(): number {
    return this.total;
  }
}
