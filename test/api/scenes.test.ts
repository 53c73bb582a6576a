/** The list of a collection's scenes, in pages. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inProcessTransport } from '../../src/cli/connection.js';
import { Client, type SceneSummary } from '../../src/client/index.js';
import { sceneKey } from '../../src/storage/catalogue.js';
import { COLLECTION } from '../storage/sample-scenes.js';
import { testNode } from '../support/node.js';
import { tempFolder } from '../support/temp.js';

test('scenes come in pages that neither lose nor repeat one, and the client follows them', async (t) => {
  const node = await testNode(t, await tempFolder(t));
  const { collections, scenes } = node.storage.catalogue;
  const record = (id: string) => ({
    id,
    collection: COLLECTION.id,
    version: 'v',
    fingerprint: 'f',
    start: 0,
    end: 0,
    platform: null,
    geocodes: [],
    warnings: [],
    committedAt: 0,
  });
  const ids = Array.from({ length: 1203 }, (_, i) => `S2.${i}-a_b`).sort();
  await node.storage.catalogue.write([
    collections.set(COLLECTION.id, { ...COLLECTION, createdAt: 0 }),
    ...ids.map((id) => scenes.set(sceneKey(COLLECTION.id, id), record(id))),
    // Scenes of the neighbouring collections in key order.
    scenes.set(sceneKey(`${COLLECTION.id}-2`, 'a'), record('a')),
    scenes.set(sceneKey(COLLECTION.id.slice(0, -1), 'z'), record('z')),
  ]);

  const path = `/collections/${COLLECTION.id}/scenes`;
  const page = async (url: string) => {
    const answer = await node.server.inject(url);
    assert.equal(answer.statusCode, 200, answer.body);
    return answer.json() as { scenes: SceneSummary[]; links: { rel: string; href: string }[] };
  };
  assert.equal((await page(path)).scenes.length, 10);
  const seen: string[] = [];
  for (let url: string | undefined = `${path}?limit=401`; url; ) {
    const found = await page(url);
    seen.push(...found.scenes.map(({ id }) => id));
    url = found.links.find(({ rel }) => rel === 'next')?.href;
  }
  assert.deepEqual(seen, ids);
  assert.deepEqual((await page(`${path}?limit=1203`)).links, [], 'no empty page follows');
  const forged = await node.server.inject(`${path}?token=${encodeURIComponent('~ü\0')}`);
  assert.deepEqual([forged.statusCode, forged.json().code], [400, 'TW_API_TOKEN']);
  assert.deepEqual(
    (await new Client(inProcessTransport(node)).scenes(COLLECTION.id)).map(({ id }) => id),
    ids,
  );
  for (const query of ['limit=0', 'limit=x', 'page=2'])
    assert.equal((await node.server.inject(`${path}?${query}`)).statusCode, 400, query);
});
