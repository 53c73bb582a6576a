/**
 * How members of a ring that are on different nodes reach each other: through the port that a node has anyway, by a request CONNECT
 * that is signed by the secret of the cluster. No other request of ours is a CONNECT; `Upgrade`, which some clients send with any
 * request, would have to be handled for all of them.
 */
import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import { sign, verifySignature } from '../../dht/index.js';
import { nodeLost } from '../errors.js';

const PATH = '/cluster/internal/ring/';
const CONNECT_TIMEOUT_MS = 5000;
/** An idle connection whose other end is silent for about ten times this has ended, ms: the machine there is gone. */
const KEEP_ALIVE_MS = 1000;
const NO_BODY = new Uint8Array();

/** Where a member of this node waits for the one before it. */
export interface PendingConnection {
  /** Nobody can guess it. */
  id: string;
  connection: Promise<Duplex>;
  /** Also ends the visitor's connection, where one has come; what is on its way still arrives. */
  close(): void;
}

/** The doors of a node. Invariant: each lets one visitor in. */
export class Rendezvous {
  private readonly pending = new Map<string, (visitor: Socket) => void>();

  constructor(private readonly secret: string) {}

  listen(): PendingConnection {
    const id = randomUUID();
    let visiting: Socket | undefined;
    const connection = new Promise<Duplex>((resolve) => {
      this.pending.set(id, (socket) => {
        visiting = socket;
        resolve(socket);
      });
    });
    const close = () => {
      this.pending.delete(id);
      visiting?.resume().end();
    };
    return { id, connection, close };
  }

  /** Of a request CONNECT that has come. Throws TW_DHT_FOREIGN_NODE, TW_DHT_CLOCK_APART. */
  accept(path: string, authorization: string | undefined, socket: Socket): void {
    verifySignature(this.secret, { method: 'CONNECT', path, body: NO_BODY }, authorization);
    const id = path.slice(PATH.length);
    const open = path.startsWith(PATH) ? this.pending.get(id) : undefined;
    if (!open) return void socket.end('HTTP/1.1 404 Not Found\r\n\r\n', () => socket.destroy());
    this.pending.delete(id);
    prepare(socket);
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    open(socket);
  }

  /** Goes to a door of another node. Throws TW_TRAIN_RING. */
  connect({ node, url }: { node: string; url: string }, door: string): Promise<Duplex> {
    const path = PATH + door;
    const authorization = sign(this.secret, { method: 'CONNECT', path, body: NO_BODY });
    return new Promise((resolve, reject) => {
      const asked = request({
        ...urlToHttpOptions(new URL(url)),
        ...{ method: 'CONNECT', path, headers: { authorization }, agent: false, timeout: CONNECT_TIMEOUT_MS },
      });
      const fail = (detail: string) => {
        asked.destroy();
        reject(nodeLost(node, detail));
      };
      asked.on('connect', ({ statusCode }, socket: Socket, head) => {
        if (statusCode !== 200) return fail(`it answers ${statusCode} at ${url}`);
        socket.setTimeout(0);
        prepare(socket);
        socket.unshift(head);
        resolve(socket);
      });
      asked.on('response', ({ statusCode }) => fail(`it answers ${statusCode} at ${url}`));
      asked.on('timeout', () => fail(`no answer at ${url} within ${CONNECT_TIMEOUT_MS} ms`));
      asked.on('error', ({ message }) => fail(message));
      asked.end();
    });
  }
}

function prepare(socket: Socket): void {
  // It may fail before anybody listens; whoever reads it sees that it has ended.
  socket.on('error', () => undefined);
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
}

/** Copies data between two streams, in both directions, until one is closed. If one is closed already or missing, closes the other. */
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
    // What is on its way still arrives; what comes back is thrown away.
    from.on('close', () => to.end().resume());
    from.pipe(to);
  }
}
