import type { FastifyReply } from 'fastify';

/**
 * Calls `callback` once, when the answer is sent or the client has closed the connection. Calls it immediately if that has already
 * happened: a response emits `close` only once, and a handler that awaited something may register its listener too late.
 */
export function onDisconnect({ raw, request }: FastifyReply, callback: () => void): void {
  if (raw.destroyed || raw.closed || request.raw.socket.destroyed) callback();
  else raw.once('close', callback);
}
