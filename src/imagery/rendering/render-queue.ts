/** Limits the number of concurrent renderings, because each has its pixels in memory. */
import { Semaphore } from '../../async/index.js';
import { renderQueueFull } from '../errors.js';

/** Invariants: at most `running` renderings run concurrently; at most `waiting` wait, and they begin in the order of the calls. */
export class RenderQueue {
  private readonly semaphore: Semaphore;
  private count = 0;

  constructor(
    private readonly running: number,
    private readonly waiting: number,
  ) {
    this.semaphore = new Semaphore(running);
  }

  /** Resolves or rejects as `work` does. Throws TW_IMAGERY_BUSY if too many wait. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const waiting = this.count - this.running;
    if (waiting >= this.waiting) throw renderQueueFull(waiting);
    this.count++;
    try {
      return await this.semaphore.run(work);
    } finally {
      this.count--;
    }
  }
}
