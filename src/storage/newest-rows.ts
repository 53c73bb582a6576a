/**
 * The first rows in the order newest first, up to a limit, of those that are offered. Rows collect in a buffer of twice
 * the limit; when it is full, only the better half stays, and rows older than its last one are turned away from then on.
 */
export class NewestRows {
  private kept: number[] = [];
  private oldest = -Infinity;

  constructor(
    private readonly limit: number,
    private readonly start: Float64Array,
    private readonly compare: (a: number, b: number) => number,
  ) {}

  offer(row: number): void {
    if (this.start[row] < this.oldest || this.limit === 0) return;
    this.kept.push(row);
    if (this.kept.length < 2 * this.limit) return;
    this.kept = this.rows();
    this.oldest = this.start[this.kept.at(-1)!];
  }

  rows(): number[] {
    return this.kept.sort((a, b) => this.start[b] - this.start[a] || this.compare(a, b)).slice(0, this.limit);
  }
}
