/**
 * Limits how many pieces of work run at the same time; the others wait in the order of their calls.
 * Invariant: no work waits while a permit is free.
 */
export class Semaphore {
  private running = 0;
  private readonly waiting = new Set<() => void>();

  constructor(private readonly permits: number) {}

  /** Runs `work` with a permit. Rejects with the signal's reason if it aborts before that. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.acquire(signal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Waits for a permit and returns the function that releases it, which must be called exactly once. */
  async acquire(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.running < this.permits) this.running++;
    else await this.waitForPermit(signal);
    return () => this.release();
  }

  private waitForPermit(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const proceed = () => {
        signal?.removeEventListener('abort', abandon);
        resolve();
      };
      const abandon = () => {
        this.waiting.delete(proceed);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', abandon, { once: true });
      this.waiting.add(proceed);
    });
  }

  /** Passes the permit to the work that has waited longest. */
  private release(): void {
    const [first] = this.waiting;
    if (!first) this.running--;
    else {
      this.waiting.delete(first);
      first();
    }
  }
}
