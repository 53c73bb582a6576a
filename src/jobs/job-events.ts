/** The events of a job, as a stream from which the reader pulls: a slow reader delays no other work and needs no memory. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobRecord, JobStatus } from '../storage/index.js';
import type { LogLine } from './job-log.js';
import { hasEnded } from './job-records.js';
import type { JobService } from './job-service.js';

/** `seq` is the number of a line of the job's log: a stream that starts after it misses nothing. */
export type JobEvent =
  /** `job` is set if this is the current state; earlier states, sent to a late reader, have none. */
  | { kind: 'state'; seq: number; status: JobStatus; time: number; job?: JobRecord }
  | { kind: 'log'; seq: number; line: LogLine }
  | { kind: 'progress'; job: JobRecord }
  /** Nothing has happened for `idleMs`. */
  | { kind: 'idle' };

export interface EventOptions {
  /** Start after this line of the log. Default: start with the current state. */
  after?: number | undefined;
  /** Ends the stream. */
  signal: AbortSignal;
  /** Silence after which `idle` is sent, ms. */
  idleMs?: number;
}

const PAGE_LINES = 500;

/**
 * Yields the current state, or everything after a line of the log; then each change, until the job has ended or the node
 * stops. If the remaining log lines do not include the current state, it is sent after them. A reader that falls behind gets every state
 * and every line that the log still keeps, and only the newest progress. Throws TW_JOB_NOT_FOUND.
 */
export async function* jobEvents(
  jobs: JobService,
  id: string,
  { after, signal, idleMs = 15_000 }: EventOptions,
): AsyncGenerator<JobEvent> {
  let change = new AbortController();
  const onChange = () => change.abort();
  signal.addEventListener('abort', onChange);
  const unsubscribe = await jobs.subscribe(id, onChange);
  try {
    let previous = await jobs.get(id);
    let seq = after ?? previous.lines ?? 0;
    let known: JobStatus | undefined;
    if (after === undefined) {
      known = previous.status;
      yield currentState(previous, seq);
    }
    while (!signal.aborted) {
      change = new AbortController();
      const job = await jobs.get(id);
      for await (const line of linesUpTo(jobs, job, seq)) {
        seq = line.seq;
        if (line.status === undefined) yield { kind: 'log', seq, line };
        else {
          known = line.status;
          yield { kind: 'state', seq, status: known, time: line.time, ...(known === job.status && { job }) };
        }
      }
      // The line of this state came before `after`, or was dropped because the log was full.
      if (job.status !== known) yield currentState(job, seq);
      else if (job !== previous && job.status === 'running') yield { kind: 'progress', job };
      previous = job;
      known = job.status;
      if (hasEnded(job) || jobs.hasStopped) return;
      // A change ends the wait.
      const isIdle = await sleep(idleMs, true, { signal: change.signal }).catch(() => false);
      if (isIdle) yield { kind: 'idle' };
    }
  } finally {
    unsubscribe();
  }
}

/** The lines of the log that belong to a record of the job, read page by page on demand. */
async function* linesUpTo(jobs: JobService, { id, lines: last = 0 }: JobRecord, after: number) {
  while (after < last) {
    const page = await jobs.log(id, { after, limit: PAGE_LINES });
    for (const line of page) if (line.seq <= last) yield line;
    after = page.at(-1)?.seq ?? last;
  }
}

function currentState(job: JobRecord, seq: number): JobEvent {
  return { kind: 'state', seq, status: job.status, time: job.updated, job };
}
