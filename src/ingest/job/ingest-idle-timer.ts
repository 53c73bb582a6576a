/** Calls `onIdle` once no work has run for some time. The timer does not keep the process alive. */
export class IdleTimer {
  private running = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly idleMs: number,
    private readonly onIdle: () => Promise<void>,
  ) {}

  async runBusy<T>(work: () => Promise<T>): Promise<T> {
    this.running++;
    clearTimeout(this.timer);
    try {
      return await work();
    } finally {
      this.running--;
      if (this.running === 0) this.timer = setTimeout(() => void this.onIdle(), this.idleMs).unref();
    }
  }
}
