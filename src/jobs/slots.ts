/** Places for work that runs at the same time, given out in the order in which they were asked for. */

/** Invariant: `free` + places held = the number it was made with; nobody waits while one is free. */
export class Slots {
  private readonly waiting: (() => void)[] = [];

  constructor(private free: number) {}

  /** Runs `work` when a place is free. Rejects with the signal's reason where it aborts before that. */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.take(signal);
    try {
      return await work();
    } finally {
      this.release();
    }
  }

  private take(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      if (this.free > 0) {
        this.free--;
        return resolve();
      }
      const leave = () => {
        this.waiting.splice(this.waiting.indexOf(enter), 1);
        reject(signal.reason);
      };
      const enter = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      signal.addEventListener('abort', leave, { once: true });
      this.waiting.push(enter);
    });
  }

  /** The place goes to who waits longest. */
  private release(): void {
    const next = this.waiting.shift();
    if (next) next();
    else this.free++;
  }
}
