/** Queries between nodes of one process that communicate over HTTP. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import {
  CHECKSUM_HEADER,
  Cluster,
  type OwnerRequest,
  PeerClient,
  ScatterGather,
  type ScatterQuery,
  Signatures,
  SLOTS,
} from '../../../src/dht/index.js';
import { defineError, TilewrightError } from '../../../src/errors.js';
import { Storage } from '../../../src/storage/index.js';
import { messageCheck } from '../../../src/utils/json-schema.js';
import { type SharedStores, sharedStores } from '../shared-stores.js';

const badQuestion = defineError(
  'TW_TEST_QUESTION',
  400,
  'A test asks so.',
  (who: string) => `${who} says no`,
);
const unable = defineError('TW_TEST_UNABLE', 503, 'A test asks so.', (who: string) => `${who} cannot`);

/** Long enough even on a busy machine. */
const TIMEOUT_MS = 60_000;

interface Node {
  id: string;
  ask: ScatterQuery<string, string>;
  owners: ScatterGather;
  /** This JSON is sent as every answer; undefined restores normal answers. */
  forge(by: { answer: unknown } | undefined): void;
  /** Stops listening. */
  silence(): Promise<void>;
}

/** On that node, answers `bad <node>` and `unable <node>` with an error, and everything else with its own name. */
async function answerOf(id: string, question: string): Promise<string> {
  if (question === `bad ${id}`) throw badQuestion(id);
  if (question === 'unable all' || question === `unable ${id}`) throw unable(id);
  if (question === `broken ${id}`) throw new Error('a fault of the program');
  return id;
}

async function start(place: SharedStores, id: string): Promise<Node> {
  const { folder, objects, coordination, stops } = place;
  const storage = await Storage.open(join(folder, id), { reserve: 0 });
  let owners: ScatterGather | undefined;
  let forged: { answer: unknown } | undefined;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    try {
      const request = JSON.parse(Buffer.concat(chunks).toString()) as OwnerRequest;
      const reply = forged ? forged.answer : await owners!.handle(request);
      const bytes = Buffer.from(JSON.stringify(reply));
      response.setHeader(CHECKSUM_HEADER, crc32(bytes)).end(bytes);
    } catch (error) {
      response.writeHead(error instanceof TilewrightError ? error.status : 500).end(String(error));
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address!.port : 0}`;
  const member = { id, url, zone: id, weight: 1, software: '0', format: 1 };
  const onFailure = () => {};
  const cluster = await Cluster.join({
    member,
    storage,
    objects,
    coordination,
    owners: 2,
    onFailure,
    releaseDelayMs: 100,
  });
  const peers = new PeerClient(new Signatures(id, ['secret']));
  owners = new ScatterGather(storage, cluster, peers);
  const isText = messageCheck({ type: 'string' });
  const kind = { name: 'test', question: isText, answer: isText, timeoutMs: TIMEOUT_MS };
  const ask = owners.register<string, string>(kind, (question) => answerOf(id, question));
  const silence = async () => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  stops.push(async () => {
    await silence();
    peers.close();
    await cluster.close();
    await storage.close();
  });
  for (const startedAt = performance.now(); ; await sleep(50)) {
    const { slots } = cluster.placement;
    if (slots.length === SLOTS && slots.every((all) => all.every(({ state }) => state === 'available')))
      break;
    assert.ok(performance.now() - startedAt < TIMEOUT_MS, 'it loads its slots');
  }
  const forge = (by: typeof forged) => {
    forged = by;
  };
  return { id, ask, owners, forge, silence };
}

test('owners are asked, and their answers are returned', async (t) => {
  const place = await sharedStores(t);
  const [a, b, c] = [await start(place, 'a'), await start(place, 'b'), await start(place, 'c')];
  const settled = async () => (await c.ask('who')).answers.length === 2;
  for (const startedAt = performance.now(); !(await settled().catch(() => false)); await sleep(100))
    assert.ok(performance.now() - startedAt < TIMEOUT_MS, 'it settles');

  await t.test('the node itself for its slots, another node for the rest', async () => {
    for (const node of [a, b, c]) {
      const { answers, unanswered } = await node.ask('who');
      assert.equal(answers[0], node.id);
      assert.equal(answers.length, 2);
      assert.deepEqual(unanswered, []);
    }
    const { answers } = await a.ask('who', () => ({ ids: [] }));
    assert.deepEqual(answers, []);
  });

  await t.test('an error of the question is returned unchanged', async () => {
    const [, other] = (await a.ask('who')).answers;
    for (const who of ['a', other!])
      await assert.rejects(a.ask(`bad ${who}`), {
        code: 'TW_TEST_QUESTION',
        status: 400,
        message: `${who} says no`,
      });
  });

  await t.test('a node that is unable is skipped; if all are, the error is returned', async () => {
    for (const kind of ['unable', 'broken']) {
      const [, other] = (await a.ask('who')).answers;
      const { answers, unanswered } = await a.ask(`${kind} ${other}`);
      assert.ok(!answers.includes(other!) && answers.length > 1);
      assert.deepEqual(unanswered, []);
    }
    await assert.rejects(a.ask('unable all'), { code: 'TW_TEST_UNABLE', status: 503 });
  });

  await t.test('a malformed question is refused', async () => {
    const request = { kind: 'test', slots: '', seq: 0, wait: 0 };
    for (const question of [undefined, null, 7, {}, ['who']])
      await assert.rejects(a.owners.handle({ ...request, question }), {
        code: 'TW_DHT_BAD_QUESTION',
        status: 400,
      });
  });

  await t.test('the wait for a commit ends with the request, and is bounded', async () => {
    const request = { kind: 'test', question: 'who', slots: '', seq: 1e9, wait: 3_600_000 };
    const gone = new AbortController();
    const abandoned = a.owners.handle(request, gone.signal);
    const bounded = a.owners.handle(request);
    gone.abort(new Error('the client is gone'));
    await assert.rejects(abandoned, /the client is gone/);
    await assert.rejects(bounded, { code: 'TW_DHT_BEHIND' });
  });

  await t.test('if an owner sends a malformed answer, the next owner is asked', async () => {
    const forgeries = [
      ...[null, 5, [], {}, 'x', { answer: null }, { answer: 7 }, { error: 5 }, { error: {} }],
      ...[100, 200, 99_999, 'x'].map((status) => ({ error: { code: 'TW_X', status, message: 'm' } })),
      ...['X', 5, 'TW_X\r\nX: y'].map((code) => ({ error: { code, status: 400, message: 'm' } })),
      { error: { code: 'TW_X', status: 400, message: {} } },
      ...['x', -1, 1e15, 1e300].map((oldest) => ({ oldest })),
    ];
    const [, other] = (await a.ask('who')).answers;
    const forger = [b, c].find(({ id }) => id === other)!;
    const honest = ['a', 'b', 'c'].filter((id) => id !== other);
    for (const forgery of forgeries) {
      forger.forge({ answer: forgery });
      const { answers, unanswered } = await a.ask('who');
      assert.deepEqual(answers.sort(), honest, JSON.stringify(forgery));
      assert.deepEqual(unanswered, []);
    }
    forger.forge(undefined);
  });

  await t.test('answers stay complete without a silent node; slots without an owner are named', async () => {
    await c.silence();
    const { answers, unanswered } = await a.ask('who');
    assert.deepEqual(answers.sort(), ['a', 'b']);
    assert.deepEqual(unanswered, []);
    await b.silence();
    const left = await a.ask('who');
    assert.deepEqual(left.answers, ['a']);
    assert.ok(left.unanswered.length > 1000 && left.unanswered.length < SLOTS);
    assert.deepEqual(
      left.unanswered,
      [...new Set(left.unanswered)].sort((p, q) => p - q),
    );
  });
});
