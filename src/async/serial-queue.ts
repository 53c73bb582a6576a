/** Runs work one after another, in the order of the calls. */
export class SerialQueue {
  private last: Promise<unknown> = Promise.resolve();

  /** Resolves or rejects as `work` does. An error does not stop later work. */
  run<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.last.then(work);
    // The caller handles the error of `result`.
    this.last = result.catch(() => undefined);
    return result;
  }

  /** Resolves when all work that was queued before this call has ended. */
  async idle(): Promise<void> {
    await this.last;
  }
}
