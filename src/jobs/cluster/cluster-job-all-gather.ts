/** The meeting point of the runs of a job that wait for each other. */
import { raceAbort } from '../../async/index.js';

/** Invariant: for each waiting run, its continuation is known; a run waits for one meeting at a time. */
export class AllGather {
  private readonly waiting = new Map<string, (values: unknown[]) => void>();

  /** Resolves to the values of all runs of the job, once `deliver` gets them. Rejects with the reason of the signal. */
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

  /** Delivers the values of all runs of a job. Ignored if `run` does not wait, because it has ended. */
  deliver(run: string, values: unknown[]): void {
    this.waiting.get(run)?.(values);
  }
}
