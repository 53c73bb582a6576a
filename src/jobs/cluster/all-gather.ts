/** Where the runs of a job wait for each other. */
import { raceAbort } from '../../async/index.js';

/** Invariant: of each run that waits it is known how to go on; it waits once at a time. */
export class AllGather {
  private readonly waiting = new Map<string, (values: unknown[]) => void>();

  /** Resolves to the words of all runs of the job, when `hear` has them. Rejects with the reason of the signal. */
  async wait<T>(run: string, signal: AbortSignal): Promise<T[]> {
    const delivered = new Promise<T[]>((resolve) => {
      this.waiting.set(run, (values) => resolve(values as T[]));
    });
    try {
      return await raceAbort(delivered, signal);
    } finally {
      this.waiting.delete(run);
    }
  }

  /** What all runs of a job have said. One that does not wait has ended. */
  deliver(run: string, values: unknown[]): void {
    this.waiting.get(run)?.(values);
  }
}
