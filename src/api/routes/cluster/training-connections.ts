/** Connections of other nodes that train one model with this one. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { TilewrightError } from '../../../errors.js';
import type { Rendezvous } from '../../../training/index.js';

/** They come as requests CONNECT, which are signed. */
export function acceptTrainingConnections(server: Server, doors: Rendezvous): void {
  server.on('connect', ({ url, headers }, socket) => {
    // Who trains sees what becomes of it.
    socket.on('error', () => undefined);
    try {
      doors.accept(url ?? '', headers.authorization, socket as Socket);
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      socket.end(`HTTP/1.1 ${error.status} ${error.code}\r\n\r\n`, () => socket.destroy());
    }
  });
}
