/** Since when nodes are away. After a while others act for them: one after another by rank, so that mostly one does. */
export class FailureDetector {
  private readonly missingSince = new Map<string, number>();

  /** ms: how long a node may be away, and how long each rank waits for the one before it. */
  constructor(
    private readonly gracePeriodMs: number,
    private readonly rankDelayMs: number,
  ) {}

  /** Who is away now; the others are forgotten. */
  update(absent: ReadonlySet<string>): void {
    for (const node of this.missingSince.keys()) if (!absent.has(node)) this.missingSince.delete(node);
    for (const node of absent)
      if (!this.missingSince.has(node)) this.missingSince.set(node, performance.now());
  }

  /** ms until a node of this rank is to act for one that is away; from 0 on it is to. */
  msUntilTakeover(node: string, rank: number): number {
    return this.missingSince.get(node)! + this.gracePeriodMs + rank * this.rankDelayMs - performance.now();
  }
}
