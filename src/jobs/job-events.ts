/** What happens to a job, as a stream that a reader pulls: one that is slow holds up nobody, and costs no memory. */
import type { JobRecord, JobStatus } from '../storage/index.js';
import type { LogLine } from './job-log.js';
import type { Jobs } from './job-runner.js';
import { hasEnded } from './job-store.js';

/** `seq` is the number of a line of the job's log: a stream that begins after it misses nothing. */
export type JobEvent =
  /** `job` where the state is that of now; former states, of a reader that comes late, have none. */
  | { kind: 'state'; seq: number; status: JobStatus; time: number; job?: JobRecord }
  | { kind: 'log'; seq: number; line: LogLine }
  | { kind: 'progress'; job: JobRecord }
  /** Nothing has happened for a while. */
  | { kind: 'idle' };

export interface EventOptions {
  /** Begins after this line of the log; by default after the newest. */
  after?: number | undefined;
  /** Ends the stream. */
  signal: AbortSignal;
  /** An `idle` comes after so much silence, ms. */
  idle?: number;
}

const PAGE = 500;

/**
 * The state as it is now, then each change, until the job has ended or the node stops. A reader that falls behind gets every
 * state and every line that the log still keeps, and of progress the newest only. Throws TW_JOB_NOT_FOUND.
 */
export async function* jobEvents(
  jobs: Jobs,
  id: string,
  { after, signal, idle = 15_000 }: EventOptions,
): AsyncGenerator<JobEvent> {
  const change = new Change(signal);
  const unsubscribe = await jobs.subscribe(id, () => change.happened());
  try {
    let seq = after ?? (await jobs.lastLine(id));
    let told = await jobs.get(id);
    yield stateNow(told, seq);
    while (!signal.aborted) {
      change.reset();
      // Before its log: what led to the record is on disk with it.
      const job = await jobs.get(id);
      let known = told.status;
      for (;;) {
        const lines = await jobs.log(id, { after: seq, limit: PAGE });
        const newest = lines.findLast(({ status }) => status !== undefined);
        for (const line of lines) {
          seq = line.seq;
          if (line.status === undefined) yield { kind: 'log', seq, line };
          else {
            known = line.status;
            const isNow = line === newest && line.status === job.status;
            yield { kind: 'state', seq, status: line.status, time: line.time, ...(isNow && { job }) };
          }
        }
        if (lines.length < PAGE) break;
      }
      // Where so many lines came that the one that tells of it was dropped.
      if (job.status !== known) yield stateNow(job, seq);
      else if (job !== told && job.status === 'running') yield { kind: 'progress', job };
      told = job;
      if (hasEnded(job) || jobs.isClosed) return;
      if (!(await change.within(idle))) yield { kind: 'idle' };
    }
  } finally {
    unsubscribe();
  }
}

function stateNow(job: JobRecord, seq: number): JobEvent {
  return { kind: 'state', seq, status: job.status, time: job.updated, job };
}

/** Whether something has happened since the last `reset`. */
class Change {
  private has = false;
  private wake = () => {};

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', () => this.happened());
  }

  happened(): void {
    this.has = true;
    this.wake();
  }

  reset(): void {
    this.has = this.signal.aborted;
  }

  /** Waits for a change, at most so long, ms; false where there was none. */
  within(time: number): Promise<boolean> {
    if (this.has) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), time);
      this.wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}
