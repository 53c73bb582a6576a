/** How bodies come in: senders that wait for leave get it, those that stall are cut off, refused ones are not heard out. */
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { bodyTimedOut } from '../errors.js';

/** A body must bring at least so many bytes in each window, ms, or end within it. */
const BODY_WINDOW_MS = 60_000;
const MIN_BYTES_PER_WINDOW = 64_000;
/** How long the rest of a body that nobody wants is read and thrown away, ms: the sender may look at the answer only then. */
const DRAIN_MS = 5000;

export function registerBodyTimeout(
  server: FastifyInstance,
  { window = BODY_WINDOW_MS, least = MIN_BYTES_PER_WINDOW } = {},
): void {
  server.addHook('onRequest', async ({ raw }, reply) => {
    if (raw.complete !== false) return;
    abortWhenSlow(raw, window, least, () => reply.header('connection', 'close'));
  });
  // `Expect: 100-continue`: after `onRequest`, where a request is refused for what its head says.
  server.addHook('preParsing', async (request, reply) => {
    if (/^100-continue$/i.test(request.headers.expect ?? '')) reply.raw.writeContinue();
  });
  const forward = (...args: unknown[]) => server.server.emit('request', ...args);
  server.server.on('checkContinue', forward).on('checkExpectation', forward);
  server.addHook('onResponse', async ({ raw }) => {
    if (raw.complete !== false) return;
    raw.resume();
    setTimeout(() => {
      if (!raw.complete) raw.destroy();
    }, DRAIN_MS).unref();
  });
}

/** Whoever reads the body meets TW_API_TOO_SLOW, which is then the answer; where nobody does, the connection ends. */
function abortWhenSlow(raw: IncomingMessage, window: number, least: number, before408: () => void): void {
  let before = raw.socket.bytesRead;
  const timer = setInterval(() => {
    const { bytesRead } = raw.socket;
    if (raw.complete) clearInterval(timer);
    else if (bytesRead - before < least) {
      clearInterval(timer);
      if (raw.listenerCount('error') === 0) raw.destroy();
      else {
        before408();
        raw.emit('error', bodyTimedOut());
      }
    }
    before = bytesRead;
  }, window).unref();
  raw.once('close', () => clearInterval(timer));
}
