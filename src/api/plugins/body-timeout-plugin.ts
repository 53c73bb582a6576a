/** Request bodies: answers `Expect: 100-continue`, aborts slow uploads, and drains rejected ones. */
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { bodyTimedOut } from '../errors.js';

/** A body must deliver at least MIN_BYTES_PER_WINDOW in each window, or end within it. */
const BODY_WINDOW_MS = 60_000;
const MIN_BYTES_PER_WINDOW = 64_000;
/** How long the rest of a rejected body is read and discarded. A sender may read the answer only after it has sent its body. */
const DRAIN_MS = 5000;

export function registerBodyTimeout(
  server: FastifyInstance,
  { window = BODY_WINDOW_MS, least = MIN_BYTES_PER_WINDOW } = {},
): void {
  server.addHook('onRequest', async ({ raw }, reply) => {
    if (raw.complete !== false) return;
    abortWhenSlow(raw, window, least, () => reply.header('connection', 'close'));
  });
  // This comes after `onRequest`, which refuses requests because of their headers.
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

/** The reader of the body gets TW_API_TOO_SLOW, which becomes the answer. If nothing reads the body, the connection is closed. */
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
