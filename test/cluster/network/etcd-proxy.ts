/** An HTTP proxy between one node and one etcd server, which can lose answers to requests that etcd has executed. */
import { once } from 'node:events';
import {
  Agent,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

/** Decides about one answer: true cuts the connection instead of passing the answer on. */
export type Lose = (call: EtcdCall) => boolean;

export interface EtcdCall {
  /** Path of the JSON gateway, for example `/v3/kv/txn`. */
  path: string;
  /** Keys that the request puts, without the prefix of the cluster. */
  puts: string[];
}

export class EtcdProxy {
  /** Undefined passes every answer on. */
  lose: Lose | undefined;
  /** While true, connections are cut and new requests do not reach etcd. */
  isAway = false;
  private readonly agent = new Agent({ keepAlive: true });

  private constructor(
    private readonly target: string,
    private readonly server: Server,
    private readonly host: string,
  ) {
    server.on('request', (incoming, response) => void this.pass(incoming, response));
  }

  static async start(target: string, host: string): Promise<EtcdProxy> {
    const server = createServer();
    const proxy = new EtcdProxy(target, server, host);
    server.listen(0, host);
    await once(server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://${this.host}:${(this.server.address() as AddressInfo).port}`;
  }

  /** Cuts all connections and refuses new requests, or lets them through again. */
  setAway(isAway: boolean): void {
    this.isAway = isAway;
    if (isAway) this.server.closeAllConnections();
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
    this.agent.destroy();
  }

  private async pass(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const cut = () => response.destroy();
    if (this.isAway) return void cut();
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      const { method, url: path = '', headers } = incoming;
      const outgoing = request(this.target + path, { method, headers, agent: this.agent });
      response.once('close', () => outgoing.destroy());
      outgoing.once('error', cut).once('response', (answer) => {
        if (this.isAway || this.lose?.({ path, puts: putsOf(body) })) return void cut();
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.once('error', cut).pipe(response);
      });
      outgoing.end(body);
    } catch {
      // The node has cut the connection.
      cut();
    }
  }
}

interface GatewayRequest {
  key?: string;
  value?: string;
  success?: { requestPut?: { key: string }; request_put?: { key: string } }[];
}

/** Keys that a request puts. */
function putsOf(body: Buffer): string[] {
  let parsed: GatewayRequest;
  try {
    parsed = JSON.parse(body.toString()) as GatewayRequest;
  } catch {
    return [];
  }
  const keys = (parsed.success ?? []).map((one) => (one.requestPut ?? one.request_put)?.key);
  if (parsed.value !== undefined) keys.push(parsed.key);
  return keys.flatMap((key) => (key === undefined ? [] : [Buffer.from(key, 'base64').toString()]));
}
