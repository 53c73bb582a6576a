/** Since when nodes are away. After a while others act for them: one after another by rank, so that mostly one does. */
export class Absences {
  private readonly since = new Map<string, number>();

  /** ms: how long a node may be away, and how long each rank waits for the one before it. */
  constructor(
    private readonly grace: number,
    private readonly turn: number,
  ) {}

  /** Who is away now; the others are forgotten. */
  see(absent: ReadonlySet<string>): void {
    for (const node of this.since.keys()) if (!absent.has(node)) this.since.delete(node);
    for (const node of absent) if (!this.since.has(node)) this.since.set(node, performance.now());
  }

  /** ms until a node of this rank is to act for one that is away; from 0 on it is to. */
  until(node: string, rank: number): number {
    return this.since.get(node)! + this.grace + rank * this.turn - performance.now();
  }
}
