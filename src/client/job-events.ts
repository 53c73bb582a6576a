/** Follows a job by its server-sent events, over lost connections and restarts of the server. */
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf, TilewrightError } from '../errors.js';
import { jobLost } from './errors.js';
import { errorFromResponse, type Transport } from './transport.js';

export type JobState = 'accepted' | 'running' | 'successful' | 'failed' | 'dismissed';

/** A job as the server tells of it. Times as in RFC 3339. */
export interface JobDocument {
  jobID: string;
  processID: string;
  status: JobState;
  message: string;
  created: string;
  started?: string;
  finished?: string;
  updated: string;
  /** Percent. */
  progress: number;
  tiles: { total: number; done: number; failed: number; skipped: number };
  error?: { code: string; message: string };
  /** Of a failed job that has some. */
  results?: unknown;
  retryOf?: string;
  retriedBy?: string;
}

export interface LogLine {
  seq: number;
  time: string;
  level: 'info' | 'warning' | 'error';
  text: string;
  status?: JobState;
}

export type JobEvent =
  /** Since when the job is in the state. Former states, of who comes late, are not told in full. */
  | { event: 'state'; data: { time: string; jobID: string; status: JobState } & Partial<JobDocument> }
  | { event: 'progress'; data: JobDocument }
  | { event: 'log'; data: Omit<LogLine, 'seq' | 'status'> };

export const hasEnded = (status: JobState) => status !== 'accepted' && status !== 'running';

/** Lost connections in a row after which the server is taken to be gone, and the pause between them, ms. */
const MAX_LOST_CONNECTIONS = 30;
const RETRY_DELAY_MS = 2000;

/**
 * The states of a job and the lines of its log, from the first that is kept to its end, and its progress from now on. Throws
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
      // Nothing has come since the last event, and nothing will.
      if (status === 204) {
        const answer = await transport('GET', `/jobs/${encodeURIComponent(id)}`);
        if (answer.status >= 400) throw errorFromResponse(path, answer);
        const data = answer.body as JobDocument;
        yield { event: 'state', data: { ...data, time: data.updated } };
        return;
      }
      if (status !== 200) throw errorFromResponse(path, { status, body: await documentOf(body) });
      for await (const { event, id: seq, data } of parseServerSentEvents(body)) {
        losses = 0;
        if (seq !== undefined) last = seq;
        const told = { event, data: JSON.parse(data) } as JobEvent;
        if (told.event === 'state') {
          // After a lost connection it is told again.
          if (told.data.status === state) continue;
          state = told.data.status;
        }
        yield told;
      }
      // The server closes after the end; before it, only where it stops.
      if (state !== undefined && hasEnded(state)) return;
    } catch (error) {
      if (signal?.aborted || !isConnectionLoss(error)) throw error;
      if (losses >= MAX_LOST_CONNECTIONS) throw jobLost.because(error, id, `${messageOf(error)}.`);
    }
    await sleep(RETRY_DELAY_MS, undefined, { signal });
  }
}

/** What a server that stops or starts, or a broken connection, looks like. */
function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof TilewrightError)) return error instanceof TypeError;
  return error.status === 429 || error.status === 503;
}

async function documentOf(body: AsyncIterable<string>): Promise<unknown> {
  let text = '';
  for await (const part of body) text += part;
  try {
    return JSON.parse(text);
  } catch {
    // Then it is no tilewright server: `failure` says so.
    return null;
  }
}

interface Message {
  event: string;
  id?: string;
  data: string;
}

/** The messages of a stream of server-sent events. Comments, and fields that this API does not use, are passed over. */
export async function* parseServerSentEvents(body: AsyncIterable<string>): AsyncGenerator<Message> {
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
