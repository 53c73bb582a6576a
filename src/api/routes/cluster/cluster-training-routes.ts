/** Connections from other nodes that train one model together with this node. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { TilewrightError } from '../../../errors.js';
import type { Rendezvous } from '../../../training/index.js';

/** The connections are signed CONNECT requests. */
export function acceptTrainingConnections(server: Server, rendezvous: Rendezvous): void {
  server.on('connect', ({ url, headers }, socket) => {
    // The training itself handles errors of the connection.
    socket.on('error', () => undefined);
    try {
      rendezvous.accept(url ?? '', headers.authorization, socket as Socket);
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      socket.end(`HTTP/1.1 ${error.status} ${error.code}\r\n\r\n`, () => socket.destroy());
    }
  });
}
