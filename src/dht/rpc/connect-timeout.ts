import type { ClientRequest } from 'node:http';

/**
 * Destroys a request with `it cannot be reached` if its socket is not connected `timeoutMs` after it starts to connect. The time in which
 * the request waits for a free socket of a pool does not count.
 */
export function limitConnectTime(request: ClientRequest, timeoutMs: number): void {
  request.once('socket', (socket) => {
    if (!socket.connecting) return;
    const check = () => {
      if (socket.connecting) request.destroy(new Error('it cannot be reached'));
    };
    // If this process was busy, a connection that is established already is noticed only after the timers.
    const timer = setTimeout(() => setImmediate(check), timeoutMs);
    socket.once('connect', () => clearTimeout(timer));
    socket.once('close', () => clearTimeout(timer));
  });
}
