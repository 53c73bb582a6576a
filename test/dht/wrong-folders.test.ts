/** Folders and stores that do not belong together are refused before anything is opened, so nothing in them is changed. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, readdir, symlink } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { reservePort } from '../../src/api/index.js';
import { LevelStore } from '../../src/coordination/level-store.js';
import { openObjectStore, Storage } from '../../src/storage/index.js';
import { writeScene } from '../storage/sample-scenes.js';
import { atEnd } from '../support/at-end.js';
import { finished, start, tilewright } from '../support/command.js';
import { tempFolder } from '../support/temp.js';
import { startMember } from './cluster-members.js';
import { freePort } from './server-processes.js';
import { type SharedStores, sharedStores } from './shared-stores.js';

const refused = (code: string, ...args: string[]) => refusedWith(1, code, ...args);

async function refusedWith(exitCode: number, code: string, ...args: string[]): Promise<string> {
  const child = start(args);
  // A server that is not refused continues to run.
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
  const { code: exit, stderr } = await finished(child);
  clearTimeout(timer);
  assert.equal(exit, exitCode, stderr);
  assert.match(stderr, new RegExp(`\\[${code}\\]`));
  return stderr;
}

const filesOf = async (folder: string) => (await readdir(folder, { recursive: true })).sort();

/** The data folder of a single node. */
async function singleNode(t: TestContext): Promise<string> {
  const dir = join(await tempFolder(t), 'single');
  const storage = await Storage.open(dir, { reserve: 0 });
  await writeScene(storage, 's', 7);
  await storage.close();
  return dir;
}

test('a store that is the data folder, or is in it or around it', async (t) => {
  const folder = await tempFolder(t);
  const store = join(folder, 'tiles');
  await mkdir(join(store, 'inner'), { recursive: true });
  await mkdir(join(folder, 'data', 'tiles'), { recursive: true });
  await symlink(store, join(folder, 'link'));
  const before = await filesOf(folder);
  const pairs = [
    [store, store],
    [join(store, 'not-made-yet', 'node'), store],
    [join(folder, 'data'), join(folder, 'data', 'tiles')],
    [join(folder, 'link'), store],
    [join(folder, 'link', 'node'), join(folder, 'tiles', 'inner', '..')],
  ] as const;
  for (const [data, at] of pairs) {
    const flags = ['--data', data, '--store', pathToFileURL(at).href];
    const port = ['--port', `${await freePort()}`];
    assert.match(await refused('TW_STORE_IN_DATA_FOLDER', 'serve', ...flags, ...port), /side by side/);
  }
  assert.deepEqual(await filesOf(folder), before);

  const single = await singleNode(t);
  const inside = ['--data', single, '--store', pathToFileURL(join(single, 'tiles')).href];
  await refused('TW_STORE_IN_DATA_FOLDER', 'node', 'join', ...inside, '--etcd', 'http://127.0.0.1:1');
});

test('a store that is the data folder of a node, or has lost its cluster.json', async (t) => {
  const where = await sharedStores(t);
  const single = await singleNode(t);
  const before = await filesOf(single);
  const objects = await openObjectStore(pathToFileURL(single).href);
  await assert.rejects(startMember({ ...where, objects }, 'a'), {
    code: 'TW_DHT_STORE_NOT_EMPTY',
    message: /is not a tile store but the data folder of a node.* "tilewright node join --data"/,
  });
  assert.deepEqual(
    (await filesOf(single)).filter((name) => name !== '.tmp'),
    before,
  );

  await where.objects.put('tiles/geohash/9q8/9q8y/t/v1/red.tif', Buffer.from('left'));
  await assert.rejects(startMember(where, 'a'), {
    code: 'TW_DHT_STORE_NOT_EMPTY',
    message: /objects such as tiles.*red.tif, but no cluster.json/,
  });
  await where.objects.delete(['tiles/geohash/9q8/9q8y/t/v1/red.tif']);
  await where.objects.put('readme', Buffer.from('of somebody'));
  const node = await startMember(where, 'a');
  await node.stop();
  const store = join(where.folder, 'store');
  await refused('TW_STORAGE_IS_STORE', 'serve', '--data', store, '--port', `${await freePort()}`);
});

/** The same tile store with a separate coordination store. */
async function besides(where: SharedStores, name: string): Promise<SharedStores> {
  const coordination = await LevelStore.open(join(where.folder, name));
  where.stops.push(() => coordination.close());
  return { ...where, coordination };
}

test('a tile store accepts one coordination store, even if several nodes start at the same time', async (t) => {
  for (let round = 0; round < 5; round++) {
    const where = await sharedStores(t);
    const ids = ['a', 'b', 'c'];
    const places = await Promise.all(ids.map((id) => besides(where, `coordination-${id}`)));
    const begin = (i: number) =>
      startMember(places[i]!, ids[i]!, { coordinationLabel: `node ${ids[i]} alone` });
    const ends = await Promise.allSettled(ids.map((_, i) => begin(i)));
    const won = ids.filter((_, i) => ends[i]!.status === 'fulfilled');
    assert.equal(won.length, 1, `${won}`);
    const refusal = {
      code: 'TW_DHT_OTHER_COORDINATION',
      message: new RegExp(`uses node ${won[0]} alone;`),
    };
    for (const [i, end] of ends.entries())
      if (end.status === 'rejected') {
        assert.equal((end.reason as { code: string }).code, refusal.code);
        await assert.rejects(begin(i), refusal);
      } else await end.value.stop();
    await (await begin(ids.indexOf(won[0]!))).stop();
  }
});

test('a node that cannot listen, or whose address is not reachable, does not join', async (t) => {
  const folder = await tempFolder(t);
  const store = join(folder, 'store');
  await mkdir(store);
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  atEnd(t, () => taken.close());
  const { port } = taken.address() as AddressInfo;
  const place = ['--data', join(folder, 'data'), '--store', pathToFileURL(store).href];
  await refused('TW_API_CANNOT_LISTEN', 'serve', ...place, '--port', `${port}`);
  const open = ['--host', '0.0.0.0', '--port', `${await freePort()}`];
  await refusedWith(2, 'TW_API_OPEN_BIND', 'serve', ...place, ...open);
  for (const host of ['0.0.0.0', '::', '[::]']) {
    const cluster = ['--etcd', 'http://127.0.0.1:1', '--secret', 's'.repeat(16), '--token', 't'];
    const { code, stderr } = await tilewright('serve', ...place, ...cluster, '--host', host);
    assert.equal(code, 2);
    assert.match(stderr, /needs --advertise, such as http:/);
  }
  assert.deepEqual(await filesOf(folder), ['store']);
});

test('while a node starts, its address answers that it is not ready', async () => {
  const port = await freePort();
  const release = await reservePort('127.0.0.1', port);
  const answer = await fetch(`http://127.0.0.1:${port}/ready`);
  assert.equal(answer.status, 503);
  assert.equal(answer.headers.get('content-type'), 'application/problem+json');
  assert.equal(((await answer.json()) as { code: string }).code, 'TW_API_NOT_READY');
  await assert.rejects(reservePort('127.0.0.1', port), { code: 'TW_API_CANNOT_LISTEN' });
  await release();
  await (await reservePort('127.0.0.1', port))();
});
