/** An address that is taken while the server for it is made: what cannot be listened on is known before the node tells others of itself. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { messageOf } from '../errors.js';
import { cannotListen, notReady } from './errors.js';
import { requireSafeBinding } from './plugins/auth.js';
import { PROBLEM_TYPE, problemDocument } from './plugins/problem-details.js';

/**
 * Answers 503 TW_API_NOT_READY there until the function is called that it resolves to. `token` is what requests will need. Throws
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
