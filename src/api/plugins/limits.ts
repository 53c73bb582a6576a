/** Limits of what one client, and all of them together, take of a server: connections, bodies in memory, open streams, uploads. */
import { BlockList, isIPv6, type Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** Amounts that clients have taken. Invariant: no sum is above its limit. */
export class ClientLimit {
  private total = 0;
  private readonly byClient = new Map<string, number>();

  constructor(
    readonly most: number,
    readonly mostOfClient: number,
  ) {}

  /** Takes an amount for a client. Returns the function that gives it back, to be called once; undefined if the limit is reached. */
  take(client: string, amount = 1): (() => void) | undefined {
    const ofClient = (this.byClient.get(client) ?? 0) + amount;
    if (this.total + amount > this.most || ofClient > this.mostOfClient) return undefined;
    this.total += amount;
    this.byClient.set(client, ofClient);
    return () => {
      this.total -= amount;
      const rest = this.byClient.get(client)! - amount;
      if (rest > 0) this.byClient.set(client, rest);
      else this.byClient.delete(client);
    };
  }
}

const MAX_CONNECTIONS = 2048;
const MAX_CONNECTIONS_OF_CLIENT = 512;
const LOG_INTERVAL_MS = 60_000;

/** The file descriptors that this process may open. */
function descriptorLimit(): number {
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  const soft = Number(report.userLimits?.open_files?.soft);
  return Number.isFinite(soft) ? soft : Infinity;
}

/** Addresses as fastify's `trustProxy` lists them. */
function addressList(addresses: readonly string[]): BlockList {
  const list = new BlockList();
  for (const address of addresses.flatMap((one) => (one === 'loopback' ? ['127.0.0.0/8', '::1'] : one))) {
    const [ip = '', bits] = address.split('/');
    const family = isIPv6(ip) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(ip, family);
    else list.addSubnet(ip, Number(bits), family);
  }
  return list;
}

/**
 * Closes new connections of a client that has too many. If there are too many in all, a new one replaces the oldest that has sent nothing.
 * `proxies` connect for many clients, so they only count for the total.
 */
export function limitConnections(server: FastifyInstance, proxies: readonly string[] = []): void {
  // Files, the object store and other nodes need descriptors too.
  const most = Math.min(MAX_CONNECTIONS, Math.floor(descriptorLimit() / 2));
  const ofClients = new ClientLimit(Infinity, Math.min(most, MAX_CONNECTIONS_OF_CLIENT));
  const open = new Set<Socket>();
  const trusted = addressList(proxies);
  let loggedAt = -Infinity;
  server.server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const isProxy = address !== '' && trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
    if (open.size >= most) closeFirstSilent(open);
    const release = open.size >= most ? undefined : isProxy ? () => {} : ofClients.take(address);
    if (release) {
      open.add(socket);
      socket.once('close', () => {
        open.delete(socket);
        release();
      });
      return;
    }
    socket.destroy();
    if (performance.now() - loggedAt < LOG_INTERVAL_MS) return;
    loggedAt = performance.now();
    server.log.warn(`${address} has too many connections; new ones are closed`);
  });
}

/** Closes the oldest connection that has sent nothing, if there is one. */
function closeFirstSilent(connections: Set<Socket>): void {
  for (const socket of connections) {
    if (socket.bytesRead > 0) continue;
    connections.delete(socket);
    socket.destroy();
    return;
  }
}
