/** Does something again and again in the background, until it is closed. */
export class PeriodicTask {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;
  private isClosed = false;

  /** Waits `interval` ms between runs, and `first` ms before the first. An error is reported to `onFailure` and does not stop later runs. */
  constructor(
    private readonly work: () => Promise<unknown>,
    private readonly intervalMs: number,
    private readonly onFailure: (error: unknown) => void,
    first = intervalMs,
  ) {
    this.schedule(first);
  }

  /** Waits for a time that has begun. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    await this.running;
  }

  private schedule(wait = this.intervalMs): void {
    if (this.isClosed) return;
    this.timer = setTimeout(() => {
      this.running = this.runOnce();
    }, wait).unref();
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
