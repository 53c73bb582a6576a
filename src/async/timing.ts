/** Work at intervals, and random waits between tries. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Runs `work` periodically in the background until it is closed. */
export class PeriodicTask {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;
  private isClosed = false;

  /** Waits `intervalMs` between runs, and `firstDelayMs` before the first. `onFailure` gets each error; later runs still take place. */
  constructor(
    private readonly work: () => Promise<unknown>,
    private readonly intervalMs: number,
    private readonly onFailure: (error: unknown) => void,
    firstDelayMs = intervalMs,
  ) {
    this.schedule(firstDelayMs);
  }

  /** Cancels later runs and waits for the current one. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    await this.running;
  }

  private schedule(delayMs = this.intervalMs): void {
    if (this.isClosed) return;
    this.timer = setTimeout(() => {
      this.running = this.runOnce();
    }, delayMs).unref();
  }

  private async runOnce(): Promise<void> {
    try {
      await this.work();
    } catch (error) {
      this.onFailure(error);
    }
    this.schedule();
  }
}

/** Waits a random time. Its maximum is 20 ms for the first try, doubles with every try, and ends at `longest` ms. */
export async function backOff(tries: number, longest = 320): Promise<void> {
  await sleep(Math.random() * Math.min(20 * 2 ** tries, longest));
}
