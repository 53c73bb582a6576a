/** Queries to owners over sockets, as of a commit: each slot has one owner, so answers come from both nodes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { Cluster } from '../../../src/dht/cluster.js';
import { CHECKSUM_HEADER, PeerClient } from '../../../src/dht/peers.js';
import type { ScatterQuery } from '../../../src/dht/scatter-gather.js';
import { type OwnerRequest, ScatterGather } from '../../../src/dht/scatter-gather.js';
import { Signatures } from '../../../src/dht/signatures.js';
import { SLOTS } from '../../../src/dht/slots.js';
import { messageOf, TilewrightError } from '../../../src/errors.js';
import { createSearch, parseFilter, TileFinder } from '../../../src/query/index.js';
import { Storage, type TileRecord } from '../../../src/storage/index.js';
import { listOf, messageCheck, TEXT } from '../../../src/utils/json-schema.js';
import { COLLECTION, writeScene } from '../../storage/sample-scenes.js';
import { type SharedStores, sharedStores } from '../shared-stores.js';

const KIND = {
  name: 'tiles',
  question: messageCheck({ type: 'null' }),
  answer: messageCheck(listOf(TEXT)),
};

interface Node {
  storage: Storage;
  cluster: Cluster;
  /** All tiles of an owner, with their versions. */
  tiles: ScatterQuery<null, string[]>;
  /** Waits until the query is cancelled, and notes that. */
  endless: ScatterQuery<null, string>;
  cancelled: string[];
  /** Node b does not know the word "new". */
  words: ScatterQuery<string, string>;
  finder: TileFinder;
  /** Awaited before the node answers another one. */
  beforeAnswer: { current: (request: OwnerRequest) => Promise<void> };
}

async function start(place: SharedStores, id: string): Promise<Node> {
  const { folder, objects, coordination, stops } = place;
  const beforeAnswer: Node['beforeAnswer'] = { current: async () => {} };
  const server = createServer((request, response) => {
    const send = (status: number, answer: unknown) => {
      const bytes = Buffer.from(JSON.stringify(answer));
      response.writeHead(status, { [CHECKSUM_HEADER]: crc32(bytes) }).end(bytes);
    };
    json(request)
      .then(async (body) => {
        await beforeAnswer.current(body as OwnerRequest);
        const gone = new AbortController();
        response.once('close', () => gone.abort(new Error('closed')));
        return owners.handle(body as OwnerRequest, gone.signal);
      })
      .then(
        (reply) => send(200, reply),
        (error) =>
          error instanceof TilewrightError
            ? send(error.status, { code: error.code, detail: error.message })
            : send(500, messageOf(error)),
      );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const storage = await Storage.open(join(folder, id), { reserve: 0 });
  const member = { id, url, zone: id, weight: 1, software: '0', format: 1 };
  const onFailure = (error: unknown) => process.emitWarning(messageOf(error));
  const cluster = await Cluster.join({ member, storage, objects, coordination, owners: 1, onFailure });
  const peers = new PeerClient(new Signatures(id, ['']));
  const owners: ScatterGather = new ScatterGather(storage, cluster, peers);
  const tiles = owners.register<null, string[]>(KIND, async (_, { only, seq }) => {
    const { ids } = storage.index.query({ where: only });
    return (await storage.getTiles(ids, seq)).map(({ id, version }) => `${id} ${version}`);
  });
  const words = owners.register<string, string>(
    {
      name: 'words',
      question: (word) => {
        if (id === 'b' && word === 'fault') throw new Error('a fault that quotes TW_DHT_BAD_QUESTION');
        return id === 'b' && word === 'new' ? 'it has an unknown word' : undefined;
      },
      answer: messageCheck(TEXT),
    },
    async () => id,
  );
  const cancelled: string[] = [];
  const endless = owners.register<null, string>(
    { name: 'endless', question: messageCheck({}), answer: messageCheck(TEXT), timeoutMs: 60_000 },
    (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => {
          cancelled.push(id);
          reject(signal.reason);
        });
      }),
  );
  stops.push(async () => {
    peers.close();
    server.closeAllConnections();
    server.close();
    await cluster.close();
    await storage.close();
  });
  const finder = new TileFinder(storage, owners);
  return { storage, cluster, tiles, words, endless, cancelled, finder, beforeAnswer };
}

async function twoNodes(place: SharedStores): Promise<[Node, Node]> {
  const a = await start(place, 'a');
  const b = await start(place, 'b');
  const isShared = ({ cluster: { placement } }: Node) =>
    placement.nodes.length === 2 &&
    placement.slots.every((owners) => owners.length === 1 && owners[0]!.state === 'available');
  for (const startedAt = performance.now(); ![a, b].every(isShared); await sleep(50))
    assert.ok(performance.now() - startedAt < 60_000, 'each node owns a half');
  return [a, b];
}

/** The tiles of both nodes, and their commit. */
async function askAll({ tiles }: Node, seq?: number): Promise<{ tiles: string[]; seq: number }> {
  const answer = await tiles(null, undefined, { seq });
  assert.deepEqual(answer.unanswered, []);
  assert.equal(answer.answers.length, 2);
  return { tiles: answer.answers.flat().sort(), seq: answer.seq! };
}

test('a query is answered as of its commit, whether earlier or about to arrive', async (t) => {
  const place = await sharedStores(t);
  const [a, b] = await twoNodes(place);
  const { replica } = a.cluster;
  const states: string[][] = [[]];
  for (let n = 1; n <= 12; n++) {
    if (n % 4 === 0) await a.storage.collections.deleteScene(COLLECTION.id, `s${n % 3}`);
    else await writeScene(a.storage, `s${n % 3}`, n);
    const { tiles, seq } = await askAll(a);
    assert.equal(seq, replica.applied);
    states[seq] = tiles;
  }
  for (const seq of states.keys())
    for (const node of [a, b]) assert.deepEqual(await askAll(node, seq), { tiles: states[seq], seq });

  const next = replica.applied + 1;
  const [coming] = await Promise.all([askAll(b, next), writeScene(a.storage, 'late', 20)]);
  assert.deepEqual(coming, await askAll(a));
  assert.equal(coming.seq, next);
});

test('a large page comes in answers of bounded size, as of one commit', async (t) => {
  const place = await sharedStores(t);
  const [a, b] = await twoNodes(place);
  await writeScene(a.storage, 's', 7);
  const [like] = await a.storage.getTiles(a.storage.index.query({ limit: 1 }).ids);
  const commit = async (added: TileRecord[]) => {
    const lock = await a.cluster.locks.lockShared();
    await lock.commit(async () => ({ added }));
    await lock.release();
  };
  const tileOf = (i: number): TileRecord => {
    const geocode = '9q8yy c2b2n drt2z u4pru 6gyf4 s0000 xn774 r3gx2'.split(' ')[i % 8]!;
    const scene = `many-${i}`;
    return { ...like!, id: `${COLLECTION.id}_${scene}_g${geocode}`, scene, geocode, start: i, end: i };
  };
  const tiles = Array.from({ length: 2000 }, (_, i) => tileOf(i));
  await commit(tiles);
  await b.cluster.replica.catchUp();

  const filter = parseFilter({ datetime: '1970-01-01T00:00:00Z/1970-01-01T00:00:01.990Z' });
  const naive = tiles.slice(0, 1991);
  let largest = 0;
  let later = 5000;
  let isWriting = false;
  b.beforeAnswer.current = async ({ question }) => {
    largest = Math.max(largest, (question as { limit: number | null }).limit ?? Infinity);
    if (isWriting) await commit([{ ...tileOf(later++), start: 1989, end: 1989 }]);
  };
  for (isWriting of [false, true])
    for (const limit of [0, 1, 499, 500, 501, 1600, 1990, 1991, 5000, Infinity]) {
      const present = later - 5000;
      const order = [{ column: 'id', descending: true }] as const;
      const {
        numberMatched,
        ids,
        tiles: found,
        next,
      } = await a.finder.find(createSearch(filter, { limit, order }));
      const count = Math.min(limit, naive.length + present);
      assert.equal(numberMatched, naive.length + present);
      assert.equal(ids.length, count);
      assert.deepEqual(ids, ids.toSorted().reverse());
      assert.deepEqual(
        found.map(({ id }) => id),
        ids,
      );
      assert.equal(new Set(ids).size, count);
      assert.equal(next !== undefined, limit > 0 && count < naive.length + present);
      if (present === 0)
        assert.deepEqual(
          ids,
          naive
            .map(({ id }) => id)
            .sort()
            .reverse()
            .slice(0, limit),
        );
      await b.cluster.replica.catchUp();
    }
  assert.ok(largest <= 500 && later > 5010, `${largest}, ${later}`);
});

test('if an owner has got slots after the commit of a query, the query is answered as of a later one', async (t) => {
  const place = await sharedStores(t);
  const [a, b] = await twoNodes(place);
  await writeScene(a.storage, 's1', 1);
  await writeScene(a.storage, 's2', 2);
  const before = await askAll(a);
  await askAll(a, before.seq - 1);
  await b.cluster.replica.catchUp();
  await b.cluster.replica.loadSlots(Array.from({ length: SLOTS }, (_, slot) => slot));
  assert.deepEqual(await askAll(a, before.seq - 1), before);
  assert.deepEqual(await askAll(a), before);
});

test('if no node has a commit or a slot, the answer names the missing slots', async (t) => {
  const place = await sharedStores(t);
  const [a, b] = await twoNodes(place);
  await writeScene(a.storage, 's1', 1);
  const { tiles, seq } = await askAll(a);
  const slots = b.cluster.replica.slots;
  await b.cluster.replica.dropSlots(slots);
  const { answers, unanswered } = await a.tiles(null);
  assert.equal(answers.length, 1);
  assert.deepEqual(unanswered, slots);
  await b.cluster.replica.loadSlots(slots);
  assert.deepEqual(await askAll(a), { tiles, seq });
});

test('a query that an owner with an earlier version does not know fails, and is not answered partially', async (t) => {
  const place = await sharedStores(t);
  const [a] = await twoNodes(place);
  const { answers, unanswered } = await a.words('old');
  assert.deepEqual([answers.sort(), unanswered], [['a', 'b'], []]);
  await assert.rejects(a.words('new'), {
    code: 'TW_DHT_PEER',
    message: /node b at .*TW_DHT_BAD_QUESTION.*it has an unknown word; run the same version on all nodes/,
  });
  // Another error that only quotes the code leaves the slots of that node unanswered.
  const partial = await a.words('fault');
  assert.deepEqual(partial.answers, ['a']);
  assert.ok(partial.unanswered.length > 0);
});

test('many concurrent queries are all answered completely', async (t) => {
  const place = await sharedStores(t);
  const [a] = await twoNodes(place);
  for (let n = 1; n <= 3; n++) await writeScene(a.storage, `s${n}`, n);
  const expected = await askAll(a);
  const answers = await Promise.all(Array.from({ length: 500 }, () => askAll(a)));
  for (const answer of answers) assert.deepEqual(answer, expected);
});

test('a query that nobody waits for ends at all nodes, and its nodes stay in use', async (t) => {
  const place = await sharedStores(t);
  const [a, b] = await twoNodes(place);
  const stop = new AbortController();
  const asked = a.endless(null, undefined, { signal: stop.signal });
  await sleep(300);
  const reason = new Error('the client has gone');
  stop.abort(reason);
  await assert.rejects(asked, reason);
  for (const startedAt = performance.now(); b.cancelled.length === 0; await sleep(20))
    assert.ok(performance.now() - startedAt < 10_000, 'the other node ends its work');
  assert.deepEqual([a.cancelled, b.cancelled], [['a'], ['b']]);
  await assert.rejects(a.endless(null, undefined, { signal: stop.signal }), reason);
  assert.equal((await a.words('old')).answers.length, 2);
});
