/**
 * Lets a number of pieces of work run at once; the others wait in the order in which they came.
 * Invariant: nobody waits while fewer than `most` run.
 */
export class Limit {
  private running = 0;
  private readonly waiting = new Set<() => void>();

  constructor(private readonly most: number) {}

  /** Waits for a place, and returns what gives it back; to be called once. */
  async enter(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.running < this.most) this.running++;
    else await this.turn(signal);
    return () => this.leave();
  }

  private turn(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const come = () => {
        signal?.removeEventListener('abort', go);
        resolve();
      };
      const go = () => {
        this.waiting.delete(come);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', go, { once: true });
      this.waiting.add(come);
    });
  }

  /** The place goes to who has waited longest. */
  private leave(): void {
    const [first] = this.waiting;
    if (!first) this.running--;
    else {
      this.waiting.delete(first);
      first();
    }
  }
}
