/** Searches with many Items. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { findItems, HttpClient } from '../../src/remote/index.js';
import { testNode } from '../support/node.js';
import { rangeServer } from '../support/range-server.js';
import { runRequest } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';

const PAGE = 100;

/** Serves a search for `count` Items without a time. `matched`: the number that the server says. */
async function searched(t: TestContext, count: number, matched: number | undefined) {
  const server = await rangeServer(t, await tempFolder(t));
  const api = `${server.url}/stac`;
  const link = { rel: 'search', method: 'POST', href: `${api}/search` };
  server.documents.set('/stac', { type: 'Catalog', links: [link] });
  server.documents.set('/stac/search', ({ body }: { body: string }) => {
    const { from = 0, ...asked } = JSON.parse(body) as { from?: number };
    const size = Math.min(PAGE, count - from);
    const features = Array.from({ length: size }, (_, i) => ({
      ...{ type: 'Feature', id: `item-${from + i}`, collection: 'c' },
      ...{ properties: {}, links: [], assets: {} },
    }));
    const next = { ...link, rel: 'next', body: { ...asked, from: from + size } };
    return {
      ...{ type: 'FeatureCollection', features, numberMatched: matched },
      links: from + size < count ? [next] : [],
    };
  });
  const client = new HttpClient({ hosts: [server.host], anyPublic: false });
  t.after(() => client.close());
  return { server, api, client };
}

const isRefused = (expected: RegExp) => (error: Error & { code: string }) => {
  assert.equal(error.code, 'TW_STAC_TOO_MANY_ITEMS');
  assert.match(error.message, expected);
  return true;
};

test('a search with many Items is refused, unless all are wanted', async (t) => {
  const { api, client, server } = await searched(t, 1201, 1201);
  await assert.rejects(findItems(client, api, {}), isRefused(/^1201 Items.*--limit N.*--yes/));
  assert.equal(server.requests.length, 2, 'the first page says how many there are');
  assert.equal((await findItems(client, api, { all: true })).length, 1201);
  const limited: unknown[] = [];
  const onLimited = (matched: number | undefined) => limited.push(matched);
  assert.equal((await findItems(client, api, { limit: 1100 }, { onLimited })).length, 1100);
  assert.equal((await findItems(client, api, { limit: 1300 }, { onLimited })).length, 1201);
  assert.deepEqual(limited, [1201]);
});

test('a server that does not count its Items is stopped at the limit', async (t) => {
  const { api, client, server } = await searched(t, 1201, undefined);
  await assert.rejects(findItems(client, api, {}), isRefused(/^more than 1000 Items/));
  assert.equal(server.requests.length, 12);
});

test('a search without a result fails if the API has no such collection', async (t) => {
  const { api, client, server } = await searched(t, 0, 0);
  const [search] = (server.documents.get('/stac') as { links: object[] }).links;
  const links = [search, { rel: 'data', href: `${server.url}/collections/` }];
  server.documents.set('/stac', { type: 'Catalog', links });
  server.documents.set('/collections/known', { type: 'Collection', id: 'known' });
  await assert.rejects(findItems(client, api, { collections: ['known', 'scense'] }), {
    code: 'TW_STAC_NO_COLLECTION',
    message: `${api} has no collection scense; ${server.url}/collections/ lists its collections`,
  });
  assert.deepEqual(await findItems(client, api, { collections: ['known'] }), []);
  assert.deepEqual(await findItems(client, api, {}), []);
  server.documents.set('/stac', { type: 'Catalog', links: [search] });
  assert.deepEqual(await findItems(client, api, { collections: ['scense'] }), []);
});

test('Items that come twice are counted', async (t) => {
  const { client } = await searched(t, 1, 1);
  const item = (id: string, updated: string) => ({ type: 'Feature', id, properties: { updated }, links: [] });
  const items = [
    item('a', '2024-01-01'),
    item('b', '2024-01-01'),
    item('a', '2024-02-01'),
    item('a', '2023-01-01'),
  ];
  const counts: number[] = [];
  const found = await findItems(client, items, {}, { onDuplicates: (count) => counts.push(count) });
  assert.deepEqual(
    found.map(({ id, document }) => [id, (document.properties as { updated: string }).updated]),
    [
      ['a', '2024-02-01'],
      ['b', '2024-01-01'],
    ],
  );
  assert.deepEqual(counts, [2]);
});

test('even all Items have a limit', async (t) => {
  const { api, client } = await searched(t, 300, 100_001);
  await assert.rejects(
    findItems(client, api, { all: true }),
    isRefused(/^100001 Items match.*at most 100000; narrow/),
  );
});

test('a job with `all` ingests all Items of a search', async (t) => {
  const { api, server } = await searched(t, 1001, 1001);
  const hosts = { hosts: [server.host], anyPublic: false };
  const node = await testNode(t, join(await tempFolder(t), 'data'), { hosts });
  const refused = await runRequest(node, '/ingest', { stac: { url: api } });
  assert.equal(refused.error?.code, 'TW_STAC_TOO_MANY_ITEMS');
  const { results } = await runRequest<{ failed: { code: string }[] }>(node, '/ingest', {
    stac: { url: api, all: true },
  });
  assert.equal(results.failed.length, 1001);
  assert.deepEqual([...new Set(results.failed.map(({ code }) => code))], ['TW_STAC_BAD_DOCUMENT']);
});
