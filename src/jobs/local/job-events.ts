/** What happens to a job, as a stream that a reader pulls: one that is slow holds up nobody, and costs no memory. */
import type { JobRecord, JobStatus } from '../../storage/index.js';
import type { LogLine } from './job-log.js';
import { hasEnded } from './job-records.js';
import type { JobService } from './job-service.js';

/** `seq` is the number of a line of the job's log: a stream that begins after it misses nothing. */
export type JobEvent =
  /** `job` where the state is that of now; other former states, of a reader that comes late, have none. */
  | { kind: 'state'; seq: number; status: JobStatus; time: number; job?: JobRecord }
  | { kind: 'log'; seq: number; line: LogLine }
  | { kind: 'progress'; job: JobRecord }
  /** Nothing has happened for a while. */
  | { kind: 'idle' };

export interface EventOptions {
  /** Begins after this line of the log; by default with the state as it is now, and what follows. */
  after?: number | undefined;
  /** Ends the stream. */
  signal: AbortSignal;
  /** An `idle` comes after so much silence, ms. */
  idleMs?: number;
}

const PAGE_LINES = 500;

/**
 * The state as it is now, or what has happened after a line of the log; then each change, until the job has ended or the node
 * stops. Where the log does not tell of the state that it is in by then, that follows. A reader that falls behind gets every state
 * and every line that the log still keeps, and of progress the newest only. Throws TW_JOB_NOT_FOUND.
 */
export async function* jobEvents(
  jobs: JobService,
  id: string,
  { after, signal, idleMs = 15_000 }: EventOptions,
): AsyncGenerator<JobEvent> {
  const change = new ChangeSignal(signal);
  const unsubscribe = await jobs.subscribe(id, () => change.happened());
  try {
    let told = await jobs.get(id);
    let seq = after ?? told.lines ?? 0;
    let known: JobStatus | undefined;
    if (after === undefined) {
      known = told.status;
      yield stateNow(told, seq);
    }
    while (!signal.aborted) {
      change.reset();
      const job = await jobs.get(id);
      for await (const line of linesUpTo(jobs, job, seq)) {
        seq = line.seq;
        if (line.status === undefined) yield { kind: 'log', seq, line };
        else {
          known = line.status;
          yield { kind: 'state', seq, status: known, time: line.time, ...(known === job.status && { job }) };
        }
      }
      // The line that tells of it came before `after`, or was dropped because so many came.
      if (job.status !== known) yield stateNow(job, seq);
      else if (job !== told && job.status === 'running') yield { kind: 'progress', job };
      told = job;
      known = job.status;
      if (hasEnded(job) || jobs.hasStopped) return;
      if (!(await change.waitMs(idleMs))) yield { kind: 'idle' };
    }
  } finally {
    unsubscribe();
  }
}

/** The lines of the log that belong to a record of the job; none is read before it is asked for. */
async function* linesUpTo(jobs: JobService, { id, lines: last = 0 }: JobRecord, after: number) {
  while (after < last) {
    const page = await jobs.log(id, { after, limit: PAGE_LINES });
    for (const line of page) if (line.seq <= last) yield line;
    after = page.at(-1)?.seq ?? last;
  }
}

function stateNow(job: JobRecord, seq: number): JobEvent {
  return { kind: 'state', seq, status: job.status, time: job.updated, job };
}

/** Whether something has happened since the last `reset`. */
class ChangeSignal {
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
  waitMs(time: number): Promise<boolean> {
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
