/** Does something again and again in the background, until it is closed. */
export class Repeated {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;
  private isClosed = false;

  /** Waits `interval` ms between runs, and `first` ms before the first. An error is reported to `onFailure` and does not stop later runs. */
  constructor(
    private readonly work: () => Promise<unknown>,
    private readonly interval: number,
    private readonly onFailure: (error: unknown) => void,
    first = interval,
  ) {
    this.later(first);
  }

  /** Waits for a time that has begun. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    await this.running;
  }

  private later(wait = this.interval): void {
    if (this.isClosed) return;
    this.timer = setTimeout(() => {
      this.running = this.once();
    }, wait).unref();
  }

  private async once(): Promise<void> {
    try {
      await this.work();
    } catch (error) {
      this.onFailure(error);
    }
    this.later();
  }
}
