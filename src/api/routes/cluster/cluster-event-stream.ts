/** Answers to messages of other nodes that take long: a stream of events with a regular sign of life. */
import { PassThrough } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { encodeLine, NDJSON_TYPE } from '../../../dht/index.js';
import { jobInterrupted } from '../../../jobs/index.js';
import { onDisconnect } from '../../http/index.js';

/** Interval of the events by which the work shows that it is alive. */
const HEARTBEAT_MS = 1000;

/**
 * Answers with the events that `work` sends, and ends the answer after it. The signal is aborted when the other node is gone. `work` must
 * report its errors as events.
 */
export function replyWithEvents<Event>(
  reply: FastifyReply,
  job: string,
  work: (send: (event: Event | { beat: true }) => void, stopped: AbortSignal) => Promise<void>,
): FastifyReply {
  const stopped = new AbortController();
  const lines = new PassThrough();
  const send = (event: Event | { beat: true }) => {
    if (!lines.destroyed && !lines.writableEnded) lines.write(encodeLine(event));
  };
  const heartbeat = setInterval(() => send({ beat: true }), HEARTBEAT_MS);
  onDisconnect(reply, () => stopped.abort(jobInterrupted(job)));
  void work(send, stopped.signal).finally(() => {
    clearInterval(heartbeat);
    lines.end();
  });
  send({ beat: true });
  return reply.type(NDJSON_TYPE).send(lines);
}
