/** Follows a job by its server-sent events, across lost connections and restarts of the server. */
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StatusInfo } from '../api/index.js';
import { messageOf, TilewrightError } from '../errors.js';
import type { LogLine as StoredLine } from '../jobs/index.js';
import { jobLost } from './errors.js';
import { errorFromResponse, parseJsonOrNull, type Transport } from './transport.js';

/** A job, with its partial results if it failed. */
export type JobDocument = StatusInfo & { results?: unknown };

type JobState = JobDocument['status'];

/** A line of a log with an RFC 3339 time. */
export type LogLine = Omit<StoredLine, 'time'> & { time: string };

export type JobEvent =
  /** `time` is the start of the state. Past states have no other members. */
  | { event: 'state'; data: { time: string; jobID: string; status: JobState } & Partial<JobDocument> }
  | { event: 'progress'; data: JobDocument }
  | { event: 'log'; data: Omit<LogLine, 'seq' | 'status'> };

export const hasEnded = (status: JobState) => status !== 'accepted' && status !== 'running';

/** Consecutive connection losses after which the client gives up. */
const MAX_LOST_CONNECTIONS = 30;
const RETRY_DELAY_MS = 2000;

/**
 * Yields the states and the log of a job from the first stored line until the job ends, and its progress from now on. Throws
 * TW_CLIENT_JOB_LOST, TW_JOB_NOT_FOUND.
 */
export async function* followEvents(
  transport: Transport,
  id: string,
  signal?: AbortSignal,
): AsyncGenerator<JobEvent> {
  const path = `/jobs/${encodeURIComponent(id)}/events`;
  let last = '0';
  let state: JobState | undefined;
  for (let losses = 0; ; losses++) {
    try {
      const { status, body } = await transport.open(path, { 'last-event-id': last }, signal);
      // The job has ended, and there are no more events.
      if (status === 204) {
        const answer = await transport('GET', `/jobs/${encodeURIComponent(id)}`);
        if (answer.status >= 400) throw errorFromResponse(path, answer);
        const data = answer.body as JobDocument;
        yield { event: 'state', data: { ...data, time: data.updated } };
        return;
      }
      if (status !== 200) throw errorFromResponse(path, { status, body: parseJsonOrNull(await text(body)) });
      for await (const { event, id: seq, data } of parseServerSentEvents(body)) {
        losses = 0;
        if (seq !== undefined) last = seq;
        const next = { event, data: JSON.parse(data) } as JobEvent;
        if (next.event === 'state') {
          // The server repeats the state after a lost connection.
          if (next.data.status === state) continue;
          state = next.data.status;
        }
        yield next;
      }
      // The server closes the stream after the end of the job, and when the server stops.
      if (state !== undefined && hasEnded(state)) return;
    } catch (error) {
      if (signal?.aborted || !isConnectionLoss(error)) throw error;
      if (losses >= MAX_LOST_CONNECTIONS) throw jobLost.because(error, id, `${messageOf(error)}.`);
    }
    await sleep(RETRY_DELAY_MS, undefined, { signal });
  }
}

/** True for a broken connection, and for a server that is stopping, starting or overloaded. */
function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof TilewrightError)) return error instanceof TypeError;
  return error.status === 429 || error.status === 503;
}

/** Parses a stream of server-sent events. Skips comments and fields that this API does not use. */
async function* parseServerSentEvents(body: AsyncIterable<string>) {
  let rest = '';
  for await (const part of body) {
    const blocks = (rest + part).split('\n\n');
    rest = blocks.pop() as string;
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').map((line) => {
          const colon = line.indexOf(': ');
          return [line.slice(0, colon), line.slice(colon + 2)];
        }),
      );
      const event = fields.get('event');
      const data = fields.get('data');
      if (event !== undefined && data !== undefined) yield { event, id: fields.get('id'), data };
    }
  }
}
