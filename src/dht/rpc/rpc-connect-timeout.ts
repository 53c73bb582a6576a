import type { ClientRequest } from 'node:http';

/**
 * Destroys a request with `it cannot be reached` if its socket is not connected within `timeoutMs` after it starts to connect. The time
 * that the request waits for a free socket of a pool does not count.
 */
export function limitConnectTime(request: ClientRequest, timeoutMs: number): void {
  request.once('socket', (socket) => {
    if (!socket.connecting) return;
    const check = () => {
      if (socket.connecting) request.destroy(new Error('it cannot be reached'));
    };
    // If this process was busy, it notices an established connection only after the timers have run.
    const timer = setTimeout(() => setImmediate(check), timeoutMs);
    socket.once('connect', () => clearTimeout(timer));
    socket.once('close', () => clearTimeout(timer));
  });
}
