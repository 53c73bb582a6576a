/** Values counted in classes, as Prometheus wants them. */
export class Histogram {
  private readonly counts: number[];
  private total = 0;

  /** `bounds` are the upper ends of the classes, ascending; a last one takes what is above. */
  constructor(readonly bounds: readonly number[]) {
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    const place = this.bounds.findIndex((bound) => value <= bound);
    this.counts[place < 0 ? this.bounds.length : place]!++;
    this.total += value;
  }

  /** How many values are at most each bound, and in the end how many there are. */
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
