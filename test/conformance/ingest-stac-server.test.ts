/** Ingests from STAC APIs of other implementations, from PyPI. They are skipped if they cannot be installed. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { findItems, HttpClient, type StacQuery } from '../../src/remote/index.js';
import { atEnd } from '../support/at-end.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { COLLECTION, type RemoteCatalog, remoteCatalog } from '../support/remote-catalog.js';
import { freePort } from '../support/s3.js';
import { tempFolder } from '../support/temp.js';
import { servePgstac } from './pgstac.js';
import { installPython } from './python.js';

const OPTIONS = { bbox: [15.03, 47.75, 15.12, 47.8], precision: 5 };

/** Serves the Items and returns the address of the landing page. */
async function serve(t: TestContext, bin: string, items: object[]): Promise<string> {
  const folder = await tempFolder(t);
  const path = join(folder, 'items.json');
  await writeFile(path, JSON.stringify({ type: 'FeatureCollection', features: items }));
  const address = `127.0.0.1:${await freePort()}`;
  const server = spawn(join(bin, 'rustac'), ['serve', path, '--create-collections', '--addr', address], {
    stdio: 'ignore',
  });
  atEnd(t, async () => {
    server.kill('SIGKILL');
  });
  for (;;) {
    const isUp = await fetch(`http://${address}/`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) return `http://${address}/`;
    if (server.exitCode !== null) throw new Error(`rustac ended with ${server.exitCode}`);
    await sleep(50);
  }
}

/** Ingests a region from the API, and compares the tiles with those of the same files on the disk. */
async function checkIngest(t: TestContext, api: string, { server, folder }: RemoteCatalog): Promise<void> {
  const hosts = { hosts: [server.host, new URL(api).host], anyPublic: false };
  const node = await testNode(t, join(await tempFolder(t), 'data'), { hosts });
  const local = await testNode(t, join(await tempFolder(t), 'local'));
  const search = { url: api, collections: [COLLECTION], datetime: '2024-06-01/2024-06-02' };
  const run = (more: object = {}) => ingest(node, { stac: { ...search, ...more }, ...OPTIONS });

  const { failed, scenes } = await run();
  assert.deepEqual([failed, scenes.map(({ id }) => id).sort()], [[], ['a', 'b']]);
  for (const id of ['a', 'b']) await ingest(local, { href: join(folder, id), ...OPTIONS });
  const contents = async (one: typeof node) =>
    (await tilesOf(one)).map(({ id, groups }) => JSON.stringify([id, groups])).sort();
  assert.deepEqual(await contents(node), await contents(local));

  server.requests.length = 0;
  assert.ok((await run()).scenes.every(({ unchanged }) => unchanged));
  assert.deepEqual(server.requests, []);
  const clear = await run({ datetime: '2024', maxCloud: 15 });
  assert.deepEqual(clear.scenes.map(({ id }) => id).sort(), ['a', 'b']);
  assert.equal((await run({ datetime: '2024', limit: 1 })).scenes.length, 1);
}

test('a region of rustac', async (t) => {
  const python = await installPython(await tempFolder(t), ['rustac==0.9.18']);
  if (python.reason !== undefined) return t.skip(python.reason);
  const catalog = await remoteCatalog(t, { ids: ['a', 'b', 'c'] });
  await checkIngest(t, await serve(t, python.bin, catalog.items), catalog);
});

test('a region of stac-fastapi with pgstac, which divides a search into pages and has filters', async (t) => {
  const ids = ['a', 'b', 'c', ...Array.from({ length: 120 }, (_, i) => `later-${i}`)];
  const catalog = await remoteCatalog(t, { ids: ids.slice(0, 3) });
  const [first] = catalog.items;
  const later = ids.slice(3).map((id) => ({
    ...first,
    id,
    properties: { ...(first!.properties as object), datetime: '2025-01-01T00:00:00Z' },
  }));
  const collection = {
    ...{
      type: 'Collection',
      stac_version: '1.0.0',
      id: COLLECTION,
      description: 'made-up',
      license: 'other',
    },
    extent: { spatial: { bbox: [[-180, -90, 180, 90]] }, temporal: { interval: [[null, null]] } },
    links: [],
  };
  const { api, reason } = { api: '', ...(await servePgstac(t, collection, [...catalog.items, ...later])) };
  if (reason !== undefined) return t.skip(reason);
  // PostgreSQL orders the keys of assets, and bands have the order of the assets.
  for (const id of ['a', 'b']) {
    const path = join(catalog.folder, id, 'item.json');
    const item = JSON.parse(await readFile(path, 'utf8')) as { assets: object };
    const assets = Object.entries(item.assets).sort(([a], [b]) => a.length - b.length || a.localeCompare(b));
    await writeFile(path, JSON.stringify({ ...item, assets: Object.fromEntries(assets) }));
  }
  await checkIngest(t, api, catalog);

  const hosts = { hosts: [new URL(api).host], anyPublic: false };
  const client = new HttpClient(hosts);
  t.after(() => client.close());
  const find = async (query: StacQuery) => (await findItems(client, api, query)).map(({ id }) => id).sort();
  assert.deepEqual(await find({}), [...ids].sort());
  assert.deepEqual(await find({ filter: '"eo:cloud_cover" > 5 AND id <> \'b\'' }), ['c']);
  assert.deepEqual(await find({ filter: { op: '=', args: [{ property: 'id' }, 'later-7'] } }), ['later-7']);
  assert.equal((await find({ limit: 105 })).length, 105);
  assert.deepEqual(await find({ bbox: [16, 47.7, 17, 47.8] }), []);
  await assert.rejects(find({ collections: ['scense'] }), { code: 'TW_STAC_NO_COLLECTION' });
});
