/** Nodes that are started with wrong settings report a code and a remedy, and do no harm. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { Storage } from '../../src/storage/index.js';
import { writeScene } from '../storage/sample-scenes.js';
import { atEnd } from '../support/at-end.js';
import { start } from '../support/command.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { BUCKET, CREDENTIALS, freePort, S3Server, s3SkipReason } from '../support/s3.js';
import { tempFolder } from '../support/temp.js';
import { startMember } from './cluster-members.js';
import { sharedStores } from './shared-stores.js';

interface Place {
  folder: string;
  etcd: EtcdCluster;
}

async function place(t: TestContext, options: string[] = []): Promise<Place> {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  return { folder, etcd: await EtcdCluster.start(t, 1, options) };
}

interface Served {
  url: string;
  /** The output so far. */
  said(): string;
  /** Resolves to the exit code. */
  ended: Promise<number | null>;
  stop(): Promise<void>;
}

async function serve(
  t: TestContext,
  { folder, etcd }: Place,
  data: string,
  { flags = [], env = {} }: { flags?: string[]; env?: NodeJS.ProcessEnv } = {},
): Promise<Served> {
  const port = await freePort();
  const store = pathToFileURL(join(folder, 'store')).href;
  const where = ['--data', join(folder, data), '--port', `${port}`, '--reserve', '0', '--cores', '1'];
  const cluster = ['--etcd', etcd.urls.join(), '--store', store, '--secret', 'shared by all nodes'];
  const child = start(['serve', ...where, ...cluster, ...flags], env);
  let said = '';
  child.stdout?.resume();
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  atEnd(t, stop);
  return { url: `http://127.0.0.1:${port}`, said: () => said, ended, stop };
}

async function refused(t: TestContext, where: Place, data: string, code: string, more = {}): Promise<string> {
  const server = await serve(t, where, data, more);
  assert.equal(await server.ended, 1, server.said());
  assert.match(server.said(), new RegExp(`\\[${code}\\]`));
  return server.said();
}

async function running(t: TestContext, where: Place, data: string, more = {}): Promise<Served> {
  const server = await serve(t, where, data, more);
  for (let tries = 0; ; tries++) {
    const answer = await fetch(`${server.url}/ready`).catch(() => undefined);
    if (answer?.ok) return server;
    assert.ok(tries < 600, server.said());
    await sleep(100);
  }
}

test('secrets, clocks, stores and folders that do not belong together', { skip: noEtcd }, async (t) => {
  const where = await place(t);
  const first = await running(t, where, 'a');

  assert.match(
    await refused(t, where, 'b', 'TW_DHT_REFUSED', { flags: ['--secret', 'not that of the others'] }),
    /: the message is signed with another secret; start all nodes with the same --secret \[TW_DHT_REFUSED\]/,
  );
  const late = join(where.folder, 'late.mjs');
  await writeFile(late, 'const now = Date.now;\nDate.now = () => now() - 3600_000;\n');
  assert.match(
    await refused(t, where, 'b', 'TW_DHT_REFUSED', {
      env: { NODE_OPTIONS: `--import=${pathToFileURL(late).href}` },
    }),
    /the clocks .* are 3600 s apart; synchronise both with a time server/,
  );

  // A store of another cluster.
  await mkdir(join(where.folder, 'other'));
  const other = {
    flags: ['--cluster-name', 'other', '--store', pathToFileURL(join(where.folder, 'other')).href],
  };
  const second = await running(t, where, 'x', other);
  await second.stop();
  const mixed = { flags: ['--cluster-name', 'other'] };
  await refused(t, where, 'b', 'TW_DHT_OTHER_COORDINATION', mixed);
  await first.stop();
  assert.match(await refused(t, where, 'x', 'TW_DHT_OTHER_FOLDER'), /may be empty/);

  // A folder of a single node, and the folder of a cluster node.
  const single = await Storage.open(join(where.folder, 'single'), { reserve: 0 });
  await writeScene(single, 's', 7);
  await single.close();
  assert.match(await refused(t, where, 'single', 'TW_DHT_SINGLE_FOLDER'), /tilewright node join/);
  const alone = start(['search', '--data', join(where.folder, 'a')]);
  let said = '';
  alone.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  assert.deepEqual((await once(alone, 'close'))[0], 1);
  assert.match(said, /\[TW_DHT_FOLDER_OF_CLUSTER\]/);
});

test('wrong credentials, and a missing bucket', {
  skip: noEtcd || s3SkipReason,
}, async (t) => {
  const where = await place(t);
  const s3 = await S3Server.start(t);
  const bare = {
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    AWS_CONFIG_FILE: '/dev/null',
    AWS_EC2_METADATA_DISABLED: 'true',
  };
  const env = { ...bare, ...CREDENTIALS, AWS_ENDPOINT_URL_S3: s3.endpoint };
  const at = (bucket: string) => ['--store', `s3://${bucket}/tiles`];
  assert.match(
    await refused(t, where, 'a', 'TW_STORE_DENIED', {
      flags: at(BUCKET),
      env: { ...env, AWS_SECRET_ACCESS_KEY: 'not-the-one' },
    }),
    /AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment/,
  );
  assert.match(
    await refused(t, where, 'a', 'TW_STORE_NOT_FOUND', { flags: at('nothere'), env }),
    /bucket nothere/,
  );
  await (await running(t, where, 'a', { flags: at(BUCKET), env })).stop();
});

test('an etcd with keys of other programs, which stay; the operator gets warnings', {
  skip: noEtcd,
}, async (t) => {
  const where = await place(t);
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const foreign = { key: base64('/registry/pods/x'), value: base64('theirs') };
  await where.etcd.ask(0, 'kv/put', foreign);
  const server = await running(t, where, 'a');
  const found = await where.etcd.ask<{ kvs: { value: string }[] }>(0, 'kv/range', { key: foreign.key });
  assert.equal(found?.kvs[0]?.value, foreign.value);
  assert.match(server.said(), /etcd holds 1 keys of other programs/);
});

test('a node of another format is refused', async (t) => {
  const where = await sharedStores(t);
  await startMember(where, 'a');
  const member = { id: 'b', url: 'http://b', zone: 'b', weight: 1, software: '9.0.0', format: 2 };
  await assert.rejects(startMember(where, 'b', { member }), {
    code: 'TW_DHT_OTHER_FORMAT',
    message: /node a runs version 0 with document format 1, and this node has format 2/,
  });
});
