import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { crc32 } from 'node:zlib';
import { openObjectStore } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { FaultProxy, type Faults } from '../../support/fault-proxy.js';
import { BUCKET, CREDENTIALS, freePort, S3Server, s3SkipReason, setEnvironment } from '../../support/s3.js';
import { tempFolder } from '../../support/temp.js';
import { runAndKill } from '../kill-writer.js';
import { bytesOf, namesIn, storeContract } from './contract.js';
import { objectOf } from './writer-child.js';

const URL_OF_STORE = `s3://${BUCKET}/a/b`;
const LARGE = 24 << 20;
/** Bytes that one request of a stream reads. The last request finds the end of the object. */
const STREAM_PIECE_BYTES = 2 << 20;

/** For operations that are expected to fail; others may be slow on a busy machine. */
const HASTY = { timeout: 500, attempts: 2 };

/** No credential files and no instance: only what the test sets. */
const BARE = {
  AWS_PROFILE: undefined,
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  AWS_CONFIG_FILE: '/dev/null',
  AWS_EC2_METADATA_DISABLED: 'true',
  AWS_REGION: undefined,
  AWS_ENDPOINT_URL: undefined,
};

function use(
  t: TestContext,
  endpoint: string,
  credentials: Record<string, string | undefined> = CREDENTIALS,
) {
  setEnvironment(t, { ...BARE, ...credentials, AWS_ENDPOINT_URL_S3: endpoint });
}

async function opened(t: TestContext, url = URL_OF_STORE, options = {}) {
  const store = await openObjectStore(url, options);
  atEnd(t, () => store.close());
  return store;
}

/** A server, with a proxy in front of it if there are faults, and a store on it. */
async function withServer(t: TestContext, faults?: (server: S3Server) => Faults, options = {}) {
  const server = await S3Server.start(t);
  const proxy = await FaultProxy.start(t, server.endpoint, faults?.(server) ?? {});
  use(t, faults ? proxy.endpoint : server.endpoint);
  const store = await opened(t, URL_OF_STORE, options);
  return { server, proxy, store, hasty: await opened(t, URL_OF_STORE, HASTY) };
}

const skip = s3SkipReason;

storeContract({
  what: 'a bucket',
  skip,
  async open(t) {
    const { server, store } = await withServer(t);
    const gdal = {
      AWS_S3_ENDPOINT: server.endpoint.replace('http://', ''),
      AWS_HTTPS: 'NO',
      AWS_VIRTUAL_HOSTING: 'FALSE',
      AWS_REGION: 'us-east-1',
    };
    return { store, gdal, fileOf: (name) => server.fileOf(`a/b/${name}`) };
  },
});

const WRITER = fileURLToPath(new URL('writer-child.js', import.meta.url));

test('a killed writer leaves complete objects in the bucket and no others', { skip }, async (t) => {
  const { store } = await withServer(t);
  for (let round = 0, next = 1; round < 4; round++) {
    const last = await runAndKill(WRITER, ['put'], URL_OF_STORE, next);
    const names = await namesIn(store);
    for (let n = 1; n <= last; n++) assert.ok(names.includes(objectOf(n).name), `object ${n} is there`);
    for (const name of names)
      await store.get(name, { crc32: crc32(objectOf(Number(name.split('/')[2])).bytes) });
    next = last + 1;
  }
});

test('requests are repeated after 5xx and 429, up to the limit', { skip }, async (t) => {
  const statuses: number[] = [];
  const { store, proxy } = await withServer(t, () => ({ answer: () => statuses.pop() }), { attempts: 3 });
  statuses.push(503, 500);
  await store.put('a', Buffer.from('a'));
  statuses.push(429, 502);
  assert.equal(`${await store.get('a')}`, 'a');
  statuses.push(504);
  assert.deepEqual(await namesIn(store), ['a']);
  statuses.push(500);
  await store.delete(['a']);
  proxy.requests.length = 0;
  statuses.push(503, 503, 503, 503);
  await assert.rejects(store.head('a'), {
    code: 'TW_STORE_UNAVAILABLE',
    status: 503,
    message: new RegExp(`${proxy.endpoint} .*503`),
  });
  assert.equal(proxy.requests.length, 3);
  statuses.length = 0;
  statuses.push(501);
  await assert.rejects(store.get('a'), { code: 'TW_STORE_IO' });
  statuses.push(507);
  await assert.rejects(store.put('b', Buffer.from('b')), { code: 'TW_STORE_FULL' });
});

test('streams that are not read keep no request from the store', { skip }, async (t) => {
  const { store } = await withServer(t);
  const bytes = bytesOf(LARGE, 1);
  await store.put('a', bytes);
  // More than the requests that the store makes at the same time.
  const streams = await Promise.all(Array.from({ length: 40 }, () => store.stream('a')));
  assert.equal((await store.head('a'))?.bytes, LARGE);
  assert.ok((await buffer(streams[0]!)).equals(bytes));
  for (const stream of streams.slice(1)) stream.destroy();
});

test('a download that breaks off resumes where it was', { skip }, async (t) => {
  let left = 3;
  const { store, proxy } = await withServer(t, () => ({
    passed: (direction, bytes) => direction === 'down' && bytes > 1000 && left-- > 0,
  }));
  const bytes = bytesOf(LARGE, 1);
  await store.put('a', bytes);
  proxy.requests.length = 0;
  assert.ok((await store.get('a', { crc32: crc32(bytes) })).equals(bytes));
  assert.equal(proxy.requests.length, 4);
  proxy.requests.length = 0;
  left = 3;
  assert.ok((await buffer(await store.stream('a', { crc32: crc32(bytes) }))).equals(bytes));
  assert.equal(proxy.requests.length, 3 + LARGE / STREAM_PIECE_BYTES + 1);
  left = 2;
  const part = bytes.subarray(1000, 30_000_000);
  assert.ok((await store.get('a', { offset: 1000, length: part.length })).equals(part));
});

test('a server that is killed and restarted only costs time', { skip }, async (t) => {
  let killAfter = Number.POSITIVE_INFINITY;
  const restarts: Promise<void>[] = [];
  const { store, server } = await withServer(t, (running) => ({
    passed(_, bytes) {
      killAfter -= bytes;
      if (killAfter > 0) return false;
      killAfter = Number.POSITIVE_INFINITY;
      restarts.push(running.kill().then(() => running.restart()));
      return true;
    },
  }));
  const file = join(await tempFolder(t), 'large');
  const bytes = bytesOf(LARGE, 2);
  await writeFile(file, bytes);
  const sum = { crc32: crc32(bytes) };
  for (const [name, content] of [
    ['file', { file }],
    ['bytes', bytes],
  ] as const) {
    killAfter = LARGE / 2;
    await store.put(name, content);
    killAfter = LARGE / 2;
    await store.get(name, sum);
    killAfter = LARGE / 2;
    assert.ok((await buffer(await store.stream(name, sum))).equals(bytes));
  }
  await Promise.all(restarts);
  assert.equal(restarts.length, 6);
  assert.ok(server.port > 0);
});

test('a server that is killed leaves no partial object', { skip }, async (t) => {
  let killAfter = LARGE / 2;
  const { store, hasty, server } = await withServer(t, (running) => ({
    passed(_, bytes) {
      killAfter -= bytes;
      if (killAfter <= 0) running.signal('SIGKILL');
      return killAfter <= 0;
    },
  }));
  const file = join(await tempFolder(t), 'large');
  await writeFile(file, bytesOf(LARGE, 3));
  const revive = async () => {
    await server.kill();
    killAfter = Number.POSITIVE_INFINITY;
    await server.restart();
  };
  const away = { code: 'TW_STORE_UNAVAILABLE' };
  await assert.rejects(hasty.put('a', { file }), away);
  await revive();
  assert.deepEqual(await namesIn(store), []);
  await store.put('a', { file });
  killAfter = LARGE / 2;
  await assert.rejects(hasty.get('a'), away);
  await revive();
  killAfter = LARGE / 2;
  await assert.rejects(buffer(await hasty.stream('a')), away);
});

test('requests to a server that hangs time out, and succeed when it resumes', { skip }, async (t) => {
  const { store, hasty, server } = await withServer(t);
  const bytes = bytesOf(LARGE, 4);
  await store.put('a', bytes);
  const stream = await hasty.stream('a');
  server.signal('SIGSTOP');
  const hangs = { code: 'TW_STORE_UNAVAILABLE', message: new RegExp(server.endpoint) };
  const file = join(await tempFolder(t), 'large');
  await writeFile(file, bytesOf(LARGE, 5));
  const signal = AbortSignal.timeout(100);
  await Promise.all([
    assert.rejects(buffer(stream), hangs),
    assert.rejects(hasty.get('a'), hangs),
    assert.rejects(hasty.put('b', bytes), hangs),
    assert.rejects(hasty.put('c', { file }), hangs),
    assert.rejects(namesIn(hasty), hangs),
    assert.rejects(store.get('a', { signal }), { name: 'TimeoutError' }),
  ]);
  server.signal('SIGCONT');
  await store.get('a', { crc32: crc32(bytes) });
  await store.put('c', { file });
});

test('an upload that hangs times out', { skip }, async (t) => {
  let stopAfter = LARGE / 2;
  const { store, hasty, server } = await withServer(t, (running) => ({
    passed(_, bytes) {
      stopAfter -= bytes;
      if (stopAfter < 0) running.signal('SIGSTOP');
      return false;
    },
  }));
  const file = join(await tempFolder(t), 'large');
  await writeFile(file, bytesOf(LARGE, 6));
  await assert.rejects(hasty.put('a', { file }), { code: 'TW_STORE_UNAVAILABLE' });
  stopAfter = Number.POSITIVE_INFINITY;
  server.signal('SIGCONT');
  for (const name of await namesIn(store)) await store.get(name, { crc32: crc32(bytesOf(LARGE, 6)) });
});

test('no server at the address', { skip }, async (t) => {
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  use(t, endpoint);
  const store = await opened(t, URL_OF_STORE, HASTY);
  await assert.rejects(store.get('a'), {
    code: 'TW_STORE_UNAVAILABLE',
    message: new RegExp(`${endpoint} \\(nothing listens at ${endpoint.slice('http://'.length)}\\)`),
  });
  use(t, 'foo');
  const nowhere = await opened(t, URL_OF_STORE, HASTY);
  await assert.rejects(nowhere.get('a'), { code: 'TW_STORE_UNAVAILABLE', message: /AWS_ENDPOINT_URL_S3/ });
});

test('wrong and missing credentials are distinguished, and not printed', { skip }, async (t) => {
  const { server, store } = await withServer(t);
  await store.put('a', Buffer.from('a'));
  const refused = async (what: RegExp) => {
    const other = await opened(t);
    const attempts = [
      () => other.head('a'),
      () => other.get('a'),
      () => other.put('b', Buffer.from('b')),
      () => namesIn(other),
      () => other.delete(['a']),
    ];
    for (const attempt of attempts)
      await assert.rejects(attempt, (error: Error & { code: string }) => {
        assert.equal(error.code, 'TW_STORE_DENIED');
        assert.match(error.message, what);
        assert.doesNotMatch(error.message, /hush/);
        return true;
      });
  };
  use(t, server.endpoint, { ...CREDENTIALS, AWS_SECRET_ACCESS_KEY: 'hush-hush' });
  await refused(/AWS_SECRET_ACCESS_KEY of the environment/);
  use(t, server.endpoint, { ...CREDENTIALS, AWS_ACCESS_KEY_ID: 'hush-hush' });
  await refused(/AWS_ACCESS_KEY_ID/);
  use(t, server.endpoint, { AWS_ACCESS_KEY_ID: undefined, AWS_SECRET_ACCESS_KEY: undefined });
  await refused(/no credentials were found/);

  const file = join(await tempFolder(t), 'credentials');
  await writeFile(file, '[lab]\naws_access_key_id = tester\naws_secret_access_key = hush\n');
  const profile = { AWS_PROFILE: 'lab', AWS_SHARED_CREDENTIALS_FILE: file };
  use(t, server.endpoint, { AWS_ACCESS_KEY_ID: undefined, AWS_SECRET_ACCESS_KEY: undefined, ...profile });
  await refused(/profile "lab"/);
});

test('a missing bucket is not an empty one', { skip }, async (t) => {
  await withServer(t);
  const store = await opened(t, 's3://nothing/here');
  const missing = { code: 'TW_STORE_NOT_FOUND', message: /bucket nothing/ };
  await assert.rejects(store.head('a'), missing);
  await assert.rejects(store.get('a'), missing);
  await assert.rejects(store.put('a', Buffer.from('a')), missing);
  await assert.rejects(namesIn(store), missing);
  await assert.rejects(store.delete(['a']), missing);
});

test('two prefixes of a bucket are independent', { skip }, async (t) => {
  const { store } = await withServer(t);
  const [other, whole] = [await opened(t, `s3://${BUCKET}/a/bc/`), await opened(t, `s3://${BUCKET}`)];
  await store.put('x', Buffer.from('x'));
  await other.put('y', Buffer.from('y'));
  assert.deepEqual([await namesIn(store), await namesIn(other)], [['x'], ['y']]);
  assert.deepEqual(await namesIn(whole), ['a/b/x', 'a/bc/y']);
  assert.equal(whole.location('a/b/x'), store.location('x'));
});

test('a file that changes while it is sent is not stored', { skip }, async (t) => {
  const file = join(await tempFolder(t), 'large');
  await writeFile(file, bytesOf(LARGE, 7));
  let changed = false;
  const { store } = await withServer(t, () => ({
    answer({ method }) {
      if (method === 'HEAD' && !changed) writeFileSync(file, bytesOf(LARGE, 8));
      changed = true;
      return undefined;
    },
  }));
  await assert.rejects(store.put('a', { file }), { code: 'TW_STORE_CORRUPT' });
  assert.deepEqual(await namesIn(store), []);
});

/** The smallest parts that S3 allows. */
const PARTS = { partBytes: 5 << 20 };

test('a larger file is sent in parts, and appears as a whole', { skip }, async (t) => {
  const file = join(await tempFolder(t), 'large');
  const bytes = bytesOf(LARGE, 9);
  await writeFile(file, bytes);
  let seen: string[] | undefined;
  const statuses: number[] = [];
  const lost = new Set(['partNumber=3', 'complete']);
  const stepOf = ({ method, url }: { method?: string; url?: string }) =>
    method === 'POST' && url!.includes('uploadId=') ? 'complete' : /partNumber=\d+/.exec(url!)?.[0];
  const { store, proxy } = await withServer(
    t,
    () => ({
      answer: (request) => (stepOf(request) === 'partNumber=2' ? statuses.pop() : undefined),
      lose: (request) => lost.delete(stepOf(request) ?? ''),
      passed(_, __, request) {
        if (stepOf(request) === 'partNumber=5') seen ??= [];
        return false;
      },
    }),
    PARTS,
  );
  statuses.push(503, 503);
  const written = store.put('a', { file });
  while (seen === undefined) await new Promise(setImmediate);
  assert.deepEqual(await namesIn(store), []);
  await written;
  assert.equal(lost.size, 0);
  const parts = new Set(proxy.requests.flatMap((request) => /partNumber=\d+/.exec(request) ?? []));
  assert.equal(parts.size, Math.ceil(LARGE / PARTS.partBytes));
  assert.ok((await store.get('a', { crc32: crc32(bytes) })).equals(bytes));
  proxy.requests.length = 0;
  await store.put('a', { file });
  assert.ok(!proxy.requests.some((request) => request.startsWith('PUT')));
});

test('a file in parts that cannot be sent leaves nothing', { skip }, async (t) => {
  const file = join(await tempFolder(t), 'large');
  await writeFile(file, bytesOf(LARGE, 10));
  let change = false;
  const { store, proxy } = await withServer(
    t,
    () => ({
      answer({ url }) {
        if (!url!.includes('partNumber=4')) return undefined;
        if (!change) return 507;
        writeFileSync(file, bytesOf(LARGE, 11));
        return undefined;
      },
    }),
    PARTS,
  );
  const aborts = () => proxy.requests.filter((request) => /^DELETE .*uploadId=/.test(request)).length;
  await assert.rejects(store.put('a', { file }), { code: 'TW_STORE_FULL' });
  assert.equal(aborts(), 1);
  change = true;
  await assert.rejects(store.put('a', { file }), { code: 'TW_STORE_CORRUPT' });
  assert.equal(aborts(), 2);
  assert.deepEqual(await namesIn(store), []);
});
