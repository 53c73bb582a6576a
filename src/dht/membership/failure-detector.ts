/**
 * Records when each node was first seen missing. After a grace period the others take over, staggered by rank so that usually only one
 * acts.
 */
export class FailureDetector {
  private readonly missingSince = new Map<string, number>();

  /** `gracePeriodMs`: how long a node may be missing. `rankDelayMs`: the additional wait for each rank. */
  constructor(
    private readonly gracePeriodMs: number,
    private readonly rankDelayMs: number,
  ) {}

  /** Sets the nodes that are missing now; all others are forgotten. */
  update(absent: ReadonlySet<string>): void {
    for (const node of this.missingSince.keys()) if (!absent.has(node)) this.missingSince.delete(node);
    for (const node of absent)
      if (!this.missingSince.has(node)) this.missingSince.set(node, performance.now());
  }

  /** Milliseconds until a node with this rank must act for the missing `node`; 0 or less means now. */
  msUntilTakeover(node: string, rank: number): number {
    return this.missingSince.get(node)! + this.gracePeriodMs + rank * this.rankDelayMs - performance.now();
  }
}
