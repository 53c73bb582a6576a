/** Limits the number of concurrent renderings, because each has its pixels in memory. */
import { renderQueueFull } from '../errors.js';

/** Invariants: at most `running` renderings run concurrently; at most `waiting` wait, and they begin in the order of the calls. */
export class RenderQueue {
  private readonly queue: (() => void)[] = [];
  private active = 0;

  constructor(
    private readonly running: number,
    private readonly waiting: number,
  ) {}

  /** Resolves or rejects as `work` does. Throws TW_IMAGERY_BUSY if too many wait. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.active < this.running) this.active++;
    else {
      if (this.queue.length >= this.waiting) throw renderQueueFull(this.queue.length);
      await new Promise<void>((begin) => this.queue.push(begin));
    }
    try {
      return await work();
    } finally {
      const next = this.queue.shift();
      if (next) next();
      else this.active--;
    }
  }
}
