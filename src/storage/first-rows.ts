/**
 * The first rows in an order, up to a limit, of those that are offered. Rows collect in a buffer of twice the limit; when
 * it is full, only the better half stays, and rows after its last one are turned away from then on.
 */
export class FirstRows {
  private kept: number[] = [];
  private last: number | undefined;

  /** `compare` is negative where the first row comes before the second one. */
  constructor(
    private readonly limit: number,
    private readonly compare: (a: number, b: number) => number,
  ) {}

  offer(row: number): void {
    if (this.last !== undefined && this.compare(row, this.last) > 0) return;
    this.kept.push(row);
    if (this.kept.length < 2 * this.limit) return;
    this.kept = this.rows();
    this.last = this.kept.at(-1);
  }

  rows(): number[] {
    return this.kept.sort(this.compare).slice(0, this.limit);
  }
}
