/** A node leads jobs whose other node sends malformed answers: one process, one tile store, and a server that sends what the test sets. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { crc32 } from 'node:zlib';
import {
  ALL_SLOTS,
  CHECKSUM_HEADER,
  encodeLine,
  PeerClient,
  Signatures,
  SLOTS,
  STATS_PATH,
  slotNotHeld,
} from '../../../src/dht/index.js';
import { coordinate } from '../../../src/jobs/cluster/coordinator.js';
import {
  type FullJobContext,
  jobInterrupted,
  type Process,
  TASK_PATH,
  TaskExecutor,
  type TaskRequest,
} from '../../../src/jobs/index.js';
import { objectOf, TEXT } from '../../../src/utils/json-schema.js';
import { hooked } from '../../coordination/faulty-stores.js';
import { startMember, until } from '../../dht/cluster-members.js';
import { sharedStores } from '../../dht/shared-stores.js';
import { writeScene } from '../../storage/sample-scenes.js';
import { process } from '../process.js';

const SECRET = 'the secret of the test';

/** The answers of the other node: lines for a task, and its statistics. */
interface Sent {
  lines: (request: TaskRequest) => unknown[];
  holding: unknown;
}

/** The work of a task returns the node that has done it. */
function workProcess(more: Partial<Process> = {}): Process {
  return process(async () => ({ node: 'a' }), {
    inputs: objectOf({ precision: { type: 'integer' } }),
    merge: (parts) => parts,
    part: objectOf({ node: TEXT }),
    ...more,
  });
}

async function start(t: TestContext, processes: Process[]) {
  const place = await sharedStores(t);
  const sent: Sent = { lines: () => [], holding: {} };
  const answer = async (path: string, message: unknown, response: ServerResponse) => {
    if (path === TASK_PATH) {
      for (const line of sent.lines(message as TaskRequest)) response.write(encodeLine(line));
      return response.end();
    }
    const bytes = JSON.stringify(path === STATS_PATH ? sent.holding : {});
    return response.writeHead(200, { [CHECKSUM_HEADER]: crc32(bytes) }).end(bytes);
  };
  const server = createServer(async (request, response) =>
    answer(request.url!, await json(request), response),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const peers = new PeerClient(new Signatures('a', [SECRET]));
  place.stops.push(async () => {
    peers.close();
    server.closeAllConnections();
    server.close();
  });
  const log: { away?: Promise<unknown> } = {};
  // Only the leader cannot read the log while the store is unreachable.
  const coordination = hooked(place.coordination, 'transact', async () => {
    await log.away;
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const other = { id: 'b', url, zone: 'b', weight: 1, software: '0', format: 1 };
  const a = await startMember({ ...place, coordination }, 'a', { peers });
  const b = await startMember(place, 'b', { member: other });
  const { cluster, storage } = a;
  await until('both own all slots', () =>
    cluster.placement.slots.every(
      (owners) => owners.length === 2 && owners.every(({ state }) => state === 'available'),
    ),
  );
  const tasks = new TaskExecutor({ storage, objects: place.objects, cluster, processes });
  const run = (one: Process, inputs: unknown, signal = new AbortController().signal) => {
    const warnings: string[] = [];
    const context: FullJobContext = {
      ...{
        id: '000000000aaaaaa',
        started: Date.now(),
        signal,
        isMine: () => true,
        allGather: async (word) => [word],
      },
      ...{ progress: () => {}, message: () => {}, partial: () => {}, file: async () => {} },
      log: (level, text) => {
        if (level === 'warning') warnings.push(text);
      },
    };
    return { warnings, results: coordinate({ cluster, peers, tasks }, one, inputs, context) };
  };
  return { a, b, cluster, shares: tasks, sent, run, log };
}

const shareOf = (more: Partial<TaskRequest>): TaskRequest => ({
  ...{ job: '000000000aaaaaa', run: '000000000bbbbbb', process: 'fill', inputs: { precision: 5 } },
  slots: '',
  since: 0,
  ...more,
});

const never = new AbortController().signal;

test('a task whose node sends malformed lines is done by another owner', async (t) => {
  const work = workProcess();
  const { sent, run } = await start(t, [work]);
  const result = { part: { node: 'b' }, files: {}, applied: 0 };
  const ended = { result };

  sent.lines = () => [{ beat: true }, { progress: { total: 1 } }, ended];
  const good = await run(work, { precision: 5 }).results;
  assert.deepEqual((good as { node: string }[]).map(({ node }) => node).sort(), ['a', 'b']);

  const wrong: unknown[][] = [
    ...[null, 5, 'x', []].map((line) => [line, ended]),
    [{}],
    ...[null, 5, {}, { ...result, part: null }, { ...result, part: {} }, { ...result, files: null }].map(
      (one) => [{ result: one }],
    ),
    ...['x', -1, 0.5, 1e15, 1e300].map((applied) => [{ result: { ...result, applied } }]),
    ...[{ '../../x': 'y' }, { 'x.npy': 'jobs/other/x.npy' }, { 'x.npy': 5 }].map((files) => [
      { result: { ...result, files } },
    ]),
    ...[null, 5, {}, { code: 'X', status: 400, message: 'm' }].map((error) => [{ error }]),
    ...[200, 100, 'x'].map((status) => [{ error: { code: 'TW_X', status, message: 'm' } }]),
    ...[
      { progress: null },
      { progress: { total: 'x' } },
      { log: null },
      { log: { level: {}, text: {} } },
    ].map((line) => [line, ended]),
    ...[{ message: {} }, { partial: null }, { partial: {} }, { word: 1 }].map((line) => [line, ended]),
  ];
  for (const lines of wrong) {
    sent.lines = () => lines;
    const { results, warnings } = run(work, { precision: 5 });
    const nodes = ((await results) as { node: string }[]).map(({ node }) => node);
    assert.deepEqual(nodes, ['a', 'a'], JSON.stringify(lines));
    assert.equal(warnings.length, 1, JSON.stringify(lines));
  }
});

test('a job ends if a node ends its task while another one waits for it', { timeout: 60_000 }, async (t) => {
  const work = workProcess({
    usesBarrier: () => true,
    run: async (_, job) => {
      await job.allGather('a');
      return { node: 'a' };
    },
  });
  const { sent, run } = await start(t, [work]);
  sent.lines = () => [{ begun: true }, { result: { part: { node: 'b' }, files: {}, applied: 0 } }];
  await assert.rejects(run(work, { precision: 5 }).results, {
    code: 'TW_JOB_FAILED',
    message: /node b has ended its task while other nodes wait/,
  });
});

test('a job that waits for a commit of another node can be cancelled', async (t) => {
  const work = workProcess();
  const { b, sent, run, log, cluster } = await start(t, [work]);
  let bring = (_: unknown) => {};
  log.away = new Promise((resolve) => {
    bring = resolve;
  });
  await writeScene(b.storage, 's1', 1);
  const { applied } = b.cluster.replica;
  assert.ok(cluster.replica.applied < applied);
  const stopped = new AbortController();
  sent.lines = () => [{ result: { part: { node: 'b' }, files: {}, applied } }];
  const { replica } = cluster;
  const waitForNamed = replica.waitForNamedCommit.bind(replica);
  replica.waitForNamedCommit = (...asked) => {
    if (asked[0] === applied) setImmediate(() => stopped.abort(jobInterrupted('x')));
    return waitForNamed(...asked);
  };
  await assert.rejects(run(work, { precision: 5 }, stopped.signal).results, { code: 'TW_JOB_INTERRUPTED' });
  bring(undefined);
});

test('a task whose inputs do not match its process is refused, and its wait ends', async (t) => {
  let runs = 0;
  const work = workProcess({
    check: (inputs) => {
      if ((inputs as { precision: number }).precision > 9) throw slotNotHeld(1);
    },
    run: async () => {
      runs++;
      return { node: 'a' };
    },
  });
  const { shares } = await start(t, [work]);
  for (const inputs of [undefined, null, 5, {}, { precision: 'x' }])
    await assert.rejects(
      shares.run(shareOf({ inputs }), () => {}, never),
      {
        code: 'TW_JOB_INPUTS',
        status: 400,
      },
    );
  await assert.rejects(
    shares.run(shareOf({ inputs: { precision: 10 } }), () => {}, never),
    { code: slotNotHeld.code },
  );
  assert.equal(runs, 0);

  const stopped = new AbortController();
  const late = shares.run(
    shareOf({ since: 1e9 }),
    () => setImmediate(() => stopped.abort(jobInterrupted('x'))),
    stopped.signal,
  );
  await assert.rejects(late, { code: 'TW_JOB_INTERRUPTED' });
  await shares.run(shareOf({}), () => {}, never);
  assert.equal(runs, 1);
});

test('a node that sends malformed statistics is ignored', async (t) => {
  const { sent, cluster } = await start(t, []);
  const holding = { applied: 0, slots: [...ALL_SLOTS].slice(0, 3).join(), bytes: [] };
  sent.holding = holding;
  assert.deepEqual([...(await cluster.stats(60_000)).applied.keys()].sort(), ['a', 'b']);
  const wrong = [
    ...[null, 5, [], {}, { ...holding, slots: 5 }, { ...holding, slots: 'zzzz' }],
    ...['x', -1, 1e300].map((applied) => ({ ...holding, applied })),
    ...[null, 'xy', [5], [[-1, 1]], [[SLOTS, 1]], [[1, -1]], [['__proto__', 1]]].map((bytes) => ({
      ...holding,
      bytes,
    })),
  ];
  for (sent.holding of wrong) {
    const { applied, unmeasured } = await cluster.stats(60_000);
    assert.deepEqual([...applied.keys()], ['a'], JSON.stringify(sent.holding));
    assert.equal(unmeasured, 0);
  }
});
