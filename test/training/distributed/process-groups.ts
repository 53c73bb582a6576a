/** Creates rings for tests: all members run in one process and use local sockets. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import {
  type ProcessGroup,
  RingConnection,
  SINGLE_PROCESS_GROUP,
} from '../../../src/training/distributed/ring.js';

export interface TestRing {
  rings: ProcessGroup[];
  links: RingConnection[];
  /** Sockets of each member to the next one and from the previous one. */
  sockets: { next: Socket; previous: Socket }[];
}

/** Members `m0`, `m1` ... */
export async function ringOf(size: number): Promise<TestRing> {
  if (size === 1) return { rings: [SINGLE_PROCESS_GROUP], links: [], sockets: [] };
  const pairs = await Promise.all(Array.from({ length: size }, () => socketPair()));
  const members = pairs.map((_, i) => `m${i}`);
  const sockets = pairs.map(([next], i) => ({ next, previous: pairs.at(i - 1)![1] }));
  const links = sockets.map(
    ({ previous, next }, index) => new RingConnection({ index, members }, previous, next),
  );
  return { rings: links, links, sockets };
}

/** Both ends of a connection. */
export async function socketPair(): Promise<[Socket, Socket]> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as { port: number }).port, '127.0.0.1');
  const [accepted] = (await once(server, 'connection')) as [Socket];
  server.close();
  return [client, accepted];
}
