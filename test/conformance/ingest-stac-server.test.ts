/** Ingests from a STAC API of another implementation: rustac, from PyPI. Skipped if it cannot be installed. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { atEnd } from '../support/at-end.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { COLLECTION, remoteCatalog } from '../support/remote-catalog.js';
import { freePort } from '../support/s3.js';
import { tempFolder } from '../support/temp.js';
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

test('a region of a STAC API of another implementation', async (t) => {
  const python = await installPython(await tempFolder(t), ['rustac==0.9.18']);
  if (python.reason !== undefined) return t.skip(python.reason);
  const { server, folder, items } = await remoteCatalog(t, { ids: ['a', 'b', 'c'] });
  const api = await serve(t, python.bin, items);
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
});
