/**
 * Connects ranks on different nodes through the API port of a node, with a CONNECT request that is signed with the secret of the cluster.
 * No other request uses CONNECT; `Upgrade`, which some clients send with any request, would have to be handled for all of them.
 */
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import type { Signatures } from '../../dht/index.js';
import { nodeLost } from '../errors.js';

const PATH = '/cluster/internal/ring/';
const CONNECT_TIMEOUT_MS = 5000;
/**
 * Interval of keep-alive probes. An idle connection whose other end is silent for about ten intervals ends, because its machine is gone.
 */
const KEEP_ALIVE_MS = 1000;

/** A rank of this node that waits for the connection of the previous rank. */
export interface PendingConnection {
  /** Random, so that it cannot be guessed. */
  id: string;
  connection: Promise<Duplex>;
  /** Also ends an established connection; data in transit still arrives. */
  close(): void;
}

/** The waiting ranks of a node. Invariant: each accepts one connection. */
export class Rendezvous {
  private readonly pending = new Map<string, (socket: Socket) => void>();

  constructor(private readonly signatures: Signatures) {}

  listen(): PendingConnection {
    const id = randomUUID();
    let connected: Socket | undefined;
    const connection = new Promise<Duplex>((resolve) => {
      this.pending.set(id, (socket) => {
        connected = socket;
        resolve(socket);
      });
    });
    const close = () => {
      this.pending.delete(id);
      connected?.resume().end();
    };
    return { id, connection, close };
  }

  /** Handles an incoming CONNECT request. Throws the errors of `Signatures.verify`. */
  accept(request: IncomingMessage, socket: Socket): void {
    this.signatures.verify(request);
    const { url: path = '' } = request;
    const id = path.slice(PATH.length);
    const open = path.startsWith(PATH) ? this.pending.get(id) : undefined;
    if (!open) return void socket.end('HTTP/1.1 404 Not Found\r\n\r\n', () => socket.destroy());
    this.pending.delete(id);
    configure(socket);
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    open(socket);
  }

  /** Connects to the waiting rank `id` of another node. Throws TW_TRAIN_RING. */
  connect({ node, url }: { node: string; url: string }, id: string): Promise<Duplex> {
    const path = PATH + id;
    const headers = this.signatures.headers(node, { method: 'CONNECT', path });
    return new Promise((resolve, reject) => {
      const connecting = request({
        ...urlToHttpOptions(new URL(url)),
        method: 'CONNECT',
        path,
        headers,
        agent: false,
        timeout: CONNECT_TIMEOUT_MS,
      });
      const fail = (detail: string) => {
        connecting.destroy();
        reject(nodeLost(node, detail));
      };
      connecting.on('connect', ({ statusCode }, socket: Socket, head) => {
        if (statusCode !== 200) return fail(`it answered ${statusCode} at ${url}`);
        socket.setTimeout(0);
        configure(socket);
        socket.unshift(head);
        resolve(socket);
      });
      connecting.on('response', ({ statusCode }) => fail(`it answered ${statusCode} at ${url}`));
      connecting.on('timeout', () => fail(`no answer at ${url} within ${CONNECT_TIMEOUT_MS} ms`));
      connecting.on('error', ({ message }) => fail(message));
      connecting.end();
    });
  }
}

function configure(socket: Socket): void {
  // The socket may fail before anyone listens; its reader sees that it has ended.
  socket.on('error', () => undefined);
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
}

/** Copies data between two streams in both directions, until one is closed. If one is already closed or missing, closes the other. */
export function pipeBothWays(a: Duplex, b: Duplex | undefined): void {
  if (!b || a.destroyed || b.destroyed) {
    a.destroy();
    b?.destroy();
    return;
  }
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    from.on('error', () => to.destroy());
    // Data in transit still arrives; data in the other direction is discarded.
    from.on('close', () => to.end().resume());
    from.pipe(to);
  }
}
