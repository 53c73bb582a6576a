/** Searches with many Items. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
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

const item = (id: string) => ({
  type: 'Feature',
  id,
  collection: 'c',
  properties: {},
  links: [],
  assets: {},
});

type Coding = [name: string, encoding: string | undefined, encode: (bytes: Buffer) => Buffer];

/** Codings of documents by zlib's encoders, with the header that names them. */
const CODINGS: Coding[] = [
  ['gzip', 'gzip', gzipSync],
  ['the old name of gzip', 'x-gzip', gzipSync],
  ['capitals', 'GZip', gzipSync],
  ['several members of gzip', 'gzip', (bytes) => Buffer.concat([gzipSync(bytes), gzipSync(' ')])],
  ['deflate', 'deflate', deflateSync],
  ['deflate without a header of zlib', 'deflate', deflateRawSync],
  ['brotli', 'br', brotliCompressSync],
  ['identity', 'identity', (bytes) => bytes],
  ['two codings', 'gzip, br', (bytes) => brotliCompressSync(gzipSync(bytes))],
  ['a file stored as gzip', undefined, gzipSync],
  [
    'a file stored as gzip, compressed again by the host',
    'br',
    (bytes) => brotliCompressSync(gzipSync(bytes)),
  ],
];

/** Serves documents with a coding; `encode` gets the bytes of each. */
async function codedServer(t: TestContext, encoding: string | undefined, encode: (bytes: Buffer) => Buffer) {
  const server = await rangeServer(t, await tempFolder(t));
  const documents = new Map<string, unknown>();
  server.fault = (_, response, { path }) => {
    const document = documents.get(path);
    if (document === undefined) return false;
    if (encoding !== undefined) response.setHeader('content-encoding', encoding);
    response.end(encode(Buffer.from(JSON.stringify(document))));
    return true;
  };
  const client = new HttpClient({ hosts: [server.host], anyPublic: false });
  t.after(() => client.close());
  return { server, documents, client };
}

for (const [name, encoding, encode] of CODINGS)
  test(`documents are read with their coding: ${name}`, async (t) => {
    const { server, documents, client } = await codedServer(t, encoding, encode);
    const links = [{ rel: 'item', href: 'a.json.gz' }];
    documents.set('/catalog.json.gz', { type: 'Catalog', id: 'root', links });
    documents.set('/a.json.gz', item('a'));
    const found = await findItems(client, `${server.url}/catalog.json.gz`, {});
    assert.deepEqual(
      found.map(({ id }) => id),
      ['a'],
    );
  });

test('a document that cannot be decompressed, or becomes too large, is an error', async (t) => {
  const bomb = gzipSync(Buffer.alloc(100e6, ' '));
  const cases: [string, (bytes: Buffer) => Buffer, string][] = [
    ['gzip', () => bomb, 'TW_REMOTE_TOO_LARGE'],
    ['br', () => brotliCompressSync(Buffer.alloc(100e6, ' ')), 'TW_REMOTE_TOO_LARGE'],
    ['gzip', (bytes) => gzipSync(bytes).subarray(0, -9), 'TW_REMOTE_BAD_ENCODING'],
    ['br', () => Buffer.from('no brotli'), 'TW_REMOTE_BAD_ENCODING'],
    ['compress', (bytes) => bytes, 'TW_REMOTE_BAD_ENCODING'],
    ['gzip', (bytes) => [1, 2, 3, 4].reduce((inner) => gzipSync(inner), bytes), 'TW_REMOTE_BAD_ENCODING'],
    [Array(1000).fill('identity').join(), (bytes) => bytes, 'TW_REMOTE_BAD_ENCODING'],
  ];
  for (const [encoding, encode, code] of cases) {
    const { server, documents, client } = await codedServer(t, encoding, encode);
    documents.set('/item.json', item('a'));
    await assert.rejects(findItems(client, `${server.url}/item.json`, {}), { code });
  }
});

test('a root without a search leads to its Items by links, or fails', async (t) => {
  const server = await rangeServer(t, await tempFolder(t));
  const client = new HttpClient({ hosts: [server.host], anyPublic: false });
  t.after(() => client.close());
  const { documents } = server;
  const collection = (id: string, ...links: object[]) => ({ type: 'Collection', id, links });
  const items = { rel: 'items', href: '/c/items' };
  for (const [path, document] of Object.entries({
    '/a': item('a'),
    '/c/items': { type: 'FeatureCollection', features: [item('a'), item('b')], links: [] },
    '/c/items?limit=100': {
      ...{ type: 'FeatureCollection', features: [item('a')] },
      links: [{ rel: 'next', href: '/c/items?page=2' }],
    },
    '/c/items?page=2': { type: 'FeatureCollection', features: [item('b')], links: [] },
    '/c': collection('c', items),
    '/d': collection('d', { rel: 'item', href: '/a' }),
    '/none': collection('c'),
    '/circle': { type: 'Catalog', links: [{ rel: 'child', href: '/circle2' }] },
    '/circle2': { type: 'Catalog', links: [{ rel: 'child', href: '/circle' }] },
    '/collections': {
      collections: [collection('c', items)],
      links: [{ rel: 'next', href: '/collections?page=2' }],
    },
    '/collections?page=2': { collections: [collection('d', { rel: 'item', href: '/a' })], links: [] },
  }))
    documents.set(path, document);
  const cases: [
    links: [rel: string, href: string][],
    collections: string[] | undefined,
    string[] | string,
  ][] = [
    [[['item', '/a']], undefined, ['a']],
    [[['child', '/d']], undefined, ['a']],
    [[['child', '/c']], undefined, ['a', 'b']],
    [
      [
        ['child', '/c'],
        ['data', '/collections'],
      ],
      undefined,
      ['a', 'b'],
    ],
    [[['data', '/collections']], undefined, ['a', 'b']],
    [[['data', '/collections']], ['c'], ['a', 'b']],
    [[['data', '/collections']], ['e'], 'TW_STAC_NO_COLLECTION'],
    [
      [
        ['child', '/c'],
        ['child', '/d'],
      ],
      ['e'],
      'TW_STAC_NO_COLLECTION',
    ],
    [[['item', '/c/items']], undefined, ['a', 'b']],
    [[['child', '/none']], undefined, 'TW_STAC_NO_ITEMS'],
    [[['child', '/circle']], undefined, 'TW_STAC_NO_ITEMS'],
    [
      [
        ['self', '/root'],
        ['conformance', '/conformance'],
      ],
      undefined,
      'TW_STAC_NO_ITEMS',
    ],
    [[], undefined, 'TW_STAC_NO_ITEMS'],
    [[['child', '/missing']], undefined, 'TW_REMOTE_REFUSED'],
  ];
  for (const [links, collections, expected] of cases) {
    documents.set('/root', { type: 'Catalog', links: links.map(([rel, href]) => ({ rel, href })) });
    const found = findItems(client, `${server.url}/root`, collections ? { collections } : {});
    if (typeof expected === 'string') await assert.rejects(found, { code: expected }, JSON.stringify(links));
    else assert.deepEqual((await found).map(({ id }) => id).sort(), expected, JSON.stringify(links));
  }
});
