/** Listens on an address while the server starts, so that an unusable address is detected before the node joins a cluster. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { messageOf } from '../errors.js';
import { cannotListen, notReady } from './errors.js';
import { PROBLEM_TYPE, problemDocument, requireSafeBinding } from './plugins/index.js';

/**
 * Answers 503 TW_API_NOT_READY until the returned function is called. `token` is the token that the server will require. Throws
 * TW_API_OPEN_BIND, TW_API_CANNOT_LISTEN.
 */
export async function reservePort(
  host: string,
  port: number,
  token: string | undefined,
): Promise<() => Promise<void>> {
  requireSafeBinding(host, token);
  const server = createServer((request, response) => {
    const body = problemDocument(notReady(), randomUUID(), request.url);
    response.writeHead(503, { 'content-type': PROBLEM_TYPE, connection: 'close' });
    response.end(JSON.stringify(body));
  });
  try {
    await once(server.listen(port, host), 'listening');
  } catch (error) {
    throw cannotListen.because(error, host, port, messageOf(error));
  }
  return async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
}
