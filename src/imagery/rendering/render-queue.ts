/** Limits how many pictures are drawn at once: each holds its pixels in memory. */
import { renderQueueFull } from '../errors.js';

/**
 * Invariants: at most `running` works run at once; at most `waiting` wait, and begin in the order of the calls, each when one that runs
 * has ended.
 */
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
