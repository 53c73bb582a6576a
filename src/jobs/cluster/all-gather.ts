/** The meeting point of the runs of a job that wait for each other. */

/** Invariant: for each waiting run, its continuation is known; a run waits for one meeting at a time. */
export class AllGather {
  private readonly waiting = new Map<string, (values: unknown[]) => void>();

  /** Resolves to the values of all runs of the job, once `deliver` gets them. Rejects with the reason of the signal. */
  async wait<T>(run: string, signal: AbortSignal): Promise<T[]> {
    // An aborted signal sends no event to later listeners.
    signal.throwIfAborted();
    let abandon = () => {};
    try {
      return await new Promise<T[]>((resolve, reject) => {
        this.waiting.set(run, (values) => resolve(values as T[]));
        abandon = () => reject(signal.reason);
        signal.addEventListener('abort', abandon);
      });
    } finally {
      signal.removeEventListener('abort', abandon);
      this.waiting.delete(run);
    }
  }

  /** Delivers the values of all runs of a job. Ignored if `run` does not wait, because it has ended. */
  deliver(run: string, values: unknown[]): void {
    this.waiting.get(run)?.(values);
  }
}
