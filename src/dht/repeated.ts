/** Does something again and again in the background, until it is closed. */
export class Repeated {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;
  private isClosed = false;

  /** `interval` ms lie between the end of one time and the next. What a time throws is told, and the next one comes. */
  constructor(
    private readonly work: () => Promise<unknown>,
    private readonly interval: number,
    private readonly onFailure: (error: unknown) => void,
  ) {
    this.later();
  }

  /** Waits for a time that has begun. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    await this.running;
  }

  private later(): void {
    if (this.isClosed) return;
    this.timer = setTimeout(() => {
      this.running = this.once();
    }, this.interval).unref();
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
