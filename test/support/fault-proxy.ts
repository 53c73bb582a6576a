/** A real HTTP proxy in front of a server, which answers with errors and closes connections as a test requires. */
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { atEnd } from './at-end.js';

export interface Faults {
  /** The status to answer with in place of the server's answer; undefined lets a request through. */
  answer?(request: IncomingMessage): number | undefined;
  /** True if the server should handle the request and its answer should be lost, because the connection is closed. */
  lose?(request: IncomingMessage): boolean;
  /** A JSON body that is sent with status 200 in place of the server's answer, after the server has handled the request. */
  replace?(request: IncomingMessage): string | undefined;
  /** Told of bytes that passed: `up` to the server, `down` from it; true cuts the connection behind them. */
  passed?(direction: 'up' | 'down', bytes: number, request: IncomingMessage): boolean | undefined;
}

/** A proxy. `requests` lists the requests as `<method> <path>`. */
export class FaultProxy {
  readonly requests: string[] = [];
  private readonly server: Server;

  private constructor(upstream: string, faults: Faults) {
    this.server = createServer((incoming, response) => {
      this.requests.push(`${incoming.method} ${incoming.url}`);
      const status = faults.answer?.(incoming);
      if (status !== undefined) {
        incoming.resume();
        response.writeHead(status, { connection: 'close' }).end();
        return;
      }
      let cut = false;
      const cutAfter = (direction: 'up' | 'down', bytes: number) => {
        if (!cut && faults.passed?.(direction, bytes, incoming)) {
          cut = true;
          response.socket?.destroySoon();
        }
      };
      const { method, url, headers } = incoming;
      const outgoing = request(upstream + url, { method, headers, agent: false }, (answer) => {
        if (faults.lose?.(incoming)) {
          answer.resume().once('end', () => response.destroy());
          return;
        }
        const body = faults.replace?.(incoming);
        if (body !== undefined) {
          answer.resume().once('end', () => {
            response.writeHead(200, { 'content-type': 'application/json' }).end(body);
          });
          return;
        }
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.on('data', (chunk: Buffer) => {
          response.write(chunk);
          cutAfter('down', chunk.length);
        });
        answer.once('end', () => response.end()).once('error', () => response.destroy());
      });
      outgoing.once('error', () => response.destroy());
      response.once('close', () => outgoing.destroy());
      incoming.on('data', (chunk: Buffer) => {
        outgoing.write(chunk);
        cutAfter('up', chunk.length);
      });
      incoming.once('end', () => outgoing.end()).once('error', () => outgoing.destroy());
    });
  }

  static async start(t: Pick<TestContext, 'after'>, upstream: string, faults: Faults): Promise<FaultProxy> {
    const proxy = new FaultProxy(upstream, faults);
    await new Promise<void>((resolve) => proxy.server.listen(0, '127.0.0.1', resolve));
    atEnd(t, () => {
      proxy.server.closeAllConnections();
      proxy.server.close();
    });
    return proxy;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }
}
