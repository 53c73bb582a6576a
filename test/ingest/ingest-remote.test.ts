/** Scenes of a STAC API over HTTP, compared with the same files on the disk. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Bbox } from '../../src/grid/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { verify } from '../../src/storage/index.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { type CatalogOptions, COLLECTION, remoteCatalog } from '../support/remote-catalog.js';
import { runRequest } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';

/** About a quarter of the scenes. */
const REGION: Bbox = [15.03, 47.75, 15.12, 47.8];
const PRECISION = 5;

async function setUp(t: TestContext, options?: CatalogOptions) {
  const catalog = await remoteCatalog(t, options);
  const node = await testNode(t, join(await tempFolder(t), 'data'), {
    hosts: { hosts: [catalog.server.host], anyPublic: false },
  });
  const fetchAll = (more: object = {}, stac: object = {}) =>
    ingest(node, { stac: { url: catalog.api, ...stac }, bbox: REGION, precision: PRECISION, ...more });
  /** The code of the error with which the job fails. */
  const failure = async (inputs: object) => (await runRequest(node, '/ingest', inputs)).error?.code;
  return { ...catalog, node, fetchAll, failure };
}

async function contents(node: TilewrightNode) {
  return (await tilesOf(node))
    .map(({ id, coverage, cloudCover, footprint, groups }) => ({
      id,
      coverage,
      cloudCover,
      footprint,
      groups,
    }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

test('tiles are those of the same files on the disk, bit for bit, and only the needed blocks are read', async (t) => {
  const { node, fetchAll, server, folder } = await setUp(t, { ids: ['a', 'b'] });
  const results = await fetchAll();
  assert.deepEqual(results.failed, []);
  assert.deepEqual(
    results.scenes.map(({ id, collection }) => `${collection}/${id}`),
    [`${COLLECTION}/a`, `${COLLECTION}/b`],
  );
  const files = server.requests.filter(({ path }) => path.endsWith('.tif'));
  assert.ok(files.every(({ method, status }) => method === 'GET' && status === 206));
  assert.ok(files.length <= 4 * 6, `${files.length} requests for 6 files`);

  const local = await testNode(t, join(await tempFolder(t), 'local'));
  for (const id of ['a', 'b'])
    await ingest(local, { href: join(folder, id), bbox: REGION, precision: PRECISION });
  const found = await contents(node);
  assert.ok(found.length >= 8 && found.length % 2 === 0);
  assert.deepEqual(found, await contents(local));
  assert.ok(
    found.some(({ cloudCover }) => cloudCover! > 0) && found.some(({ cloudCover }) => cloudCover === 0),
  );
  const red = found[0]!.groups.flatMap(({ bands }) => bands).find(({ name }) => name === 'red')!;
  assert.deepEqual(
    [red.commonName, red.scale, red.offset],
    ['red', 0.0001, 0],
    'the offset is applied already',
  );
  assert.deepEqual((await verify(node.storage)).problems, []);
  assert.deepEqual(await readdir(join(node.storage.dir, 'scratch')), []);
});

test('a second run sends search requests only, and another region only what it adds', async (t) => {
  const { node, fetchAll, server } = await setUp(t);
  await fetchAll();
  const before = await contents(node);
  server.requests.length = 0;
  const again = await fetchAll();
  assert.deepEqual([again.scenes[0]!.unchanged, again.tiles], [true, before.length]);
  assert.deepEqual(
    server.requests.map(({ path }) => path),
    ['/stac', '/stac/search'],
  );
  assert.deepEqual(await contents(node), before);
  const part = await fetchAll({ bbox: [15.07, 47.76, 15.1, 47.78] });
  assert.ok(part.scenes[0]!.unchanged && part.tiles < before.length);

  const more = await fetchAll({ bbox: [15.1, 47.75, 15.17, 47.8] });
  assert.deepEqual([more.scenes[0]!.unchanged, more.scenes[0]!.replaced], [false, false]);
  assert.ok((await tilesOf(node)).length > before.length);
  assert.deepEqual((await verify(node.storage)).problems, []);
});

test('a deleted tile is made again', async (t) => {
  const { fetchAll, node } = await setUp(t);
  await fetchAll();
  const before = await contents(node);
  await node.storage.collections.deleteTile(before[0]!.id);
  const { scenes } = await fetchAll();
  assert.equal(scenes[0]!.unchanged, false);
  assert.deepEqual(await contents(node), before);
});

test('an Item that comes again with another content replaces its tiles', async (t) => {
  const { fetchAll, items, node } = await setUp(t);
  await fetchAll();
  const properties = items[0]!.properties as Record<string, unknown>;
  properties.updated = '2024-08-01T00:00:00Z';
  assert.equal((await fetchAll()).scenes[0]!.unchanged, true, 'the files are the same');
  properties['earthsearch:boa_offset_applied'] = false;
  const { scenes } = await fetchAll();
  assert.deepEqual([scenes[0]!.unchanged, scenes[0]!.replaced], [false, true]);
  const bands = (await tilesOf(node)).flatMap(({ groups }) => groups).flatMap(({ bands }) => bands);
  assert.deepEqual(
    [...new Set(bands.filter(({ name }) => name === 'red').map(({ offset }) => offset))],
    [-0.1],
  );
});

test('a dry run names requests and bytes, and reads no block', async (t) => {
  const { fetchAll, server, node } = await setUp(t);
  const { scenes } = await fetchAll({ dryRun: true });
  const [{ fetch, geocodes }] = scenes as [(typeof scenes)[0]];
  assert.ok(geocodes!.length > 0 && fetch!.requests >= 3 && fetch!.bytes > 100_000);
  assert.ok(
    server.requests
      .filter(({ path }) => path.endsWith('.tif'))
      .every(({ range }) => range === 'bytes=0-32767'),
  );
  assert.deepEqual(await tilesOf(node), []);
  server.requests.length = 0;
  await fetchAll();
  const read = server.requests.filter(
    ({ path, range }) => path.endsWith('.tif') && range !== 'bytes=0-32767',
  );
  assert.equal(read.length, fetch!.requests);
});

test('the search is sent as asked, read page by page, and each Item is ingested once', async (t) => {
  const { fetchAll, server, items } = await setUp(t, {
    ids: ['a', 'b', 'c'],
    page: 2,
    conformsTo: ['https://api.stacspec.org/v1.0.0/item-search#query'],
  });
  items.push({ ...items[0]! });
  const stac = { collections: [COLLECTION], datetime: '2024-06', maxCloud: 15, assets: ['RED', 'scl'] };
  const { scenes } = await fetchAll({}, stac);
  // The server ignores all conditions.
  assert.deepEqual(
    scenes.map(({ id }) => id),
    ['a', 'b'],
  );
  const searches = server.requests
    .filter(({ path }) => path === '/stac/search')
    .map(({ body }) => JSON.parse(body));
  assert.equal(searches.length, 2);
  const { token: _, ...second } = searches[1];
  assert.deepEqual(second, searches[0]);
  assert.deepEqual(searches[0], {
    collections: [COLLECTION],
    bbox: REGION,
    datetime: '2024-06-01T00:00:00Z/2024-06-30T23:59:59.999Z',
    query: { 'eo:cloud_cover': { lte: 15 } },
    limit: 100,
  });
  assert.ok(!server.requests.some(({ path }) => path.includes('nir')));
});

test('a scene whose file is missing fails alone and is named', async (t) => {
  const { fetchAll, items } = await setUp(t, { ids: ['a', 'b'] });
  const { nir } = items[0]!.assets as Record<string, { href: string }>;
  nir!.href += '.gone';
  const { scenes, failed } = await fetchAll();
  assert.deepEqual(
    scenes.map(({ id }) => id),
    ['b'],
  );
  assert.equal(failed[0]!.code, 'TW_REMOTE_REFUSED');
  assert.match(failed[0]!.message, /nir\.tif\.gone answered 404/);
});

test('a file that changes between its header and its blocks fails its scene', async (t) => {
  const { fetchAll, server, node } = await setUp(t);
  server.fault = (request) => {
    if (request.headers['if-match'] !== undefined && request.url?.includes('nir'))
      request.headers['if-match'] = '"old"';
    return false;
  };
  const { failed } = await fetchAll();
  assert.equal(failed[0]!.code, 'TW_REMOTE_CHANGED');
  assert.deepEqual(await tilesOf(node), []);
  assert.deepEqual(await readdir(join(node.storage.dir, 'scratch')), []);
});

test('a server refuses hosts that are not listed, in the request and in Items', async (t) => {
  const { fetchAll, failure, items, server } = await setUp(t);
  await assert.rejects(failure({ stac: { url: 'https://example.com/stac' } }), /TW_REMOTE_HOST_NOT_ALLOWED/);
  const { red } = items[0]!.assets as Record<string, { href: string }>;
  red!.href = red!.href.replace(server.host, 'localhost:1');
  assert.equal((await fetchAll()).failed[0]!.code, 'TW_REMOTE_HOST_NOT_ALLOWED');
});

test('an Item, an ItemCollection and a static catalog are read, too', async (t) => {
  const { fetchAll, failure, items, server } = await setUp(t, { ids: ['a', 'b'] });
  server.documents.set('/items/a.json', items[0]);
  server.documents.set('/all.json', { type: 'FeatureCollection', features: items });
  server.documents.set('/catalog/catalog.json', {
    type: 'Catalog',
    id: 'root',
    links: [
      { rel: 'child', href: './s2/collection.json' },
      { rel: 'child', href: './other.json' },
    ],
  });
  server.documents.set('/catalog/other.json', {
    type: 'Collection',
    id: 'other',
    links: [{ rel: 'item', href: './missing.json' }],
  });
  server.documents.set('/catalog/s2/collection.json', {
    type: 'Collection',
    id: COLLECTION,
    links: [
      { rel: 'item', href: '../../items/a.json' },
      { rel: 'root', href: '../catalog.json' },
      { rel: 'child', href: './collection.json' },
    ],
  });
  const idsOf = async (path: string, stac: object = {}) =>
    (await fetchAll({}, { url: server.url + path, ...stac })).scenes.map(({ id }) => id);
  assert.deepEqual(await idsOf('/items/a.json'), ['a']);
  assert.deepEqual(await idsOf('/all.json'), ['a', 'b']);
  assert.deepEqual(await idsOf('/all.json', { datetime: '2024-06-02' }), ['b']);
  assert.deepEqual(await idsOf('/catalog/catalog.json', { collections: [COLLECTION] }), ['a']);
  server.documents.set('/collections/s2', {
    type: 'Collection',
    id: COLLECTION,
    links: [{ rel: 'items', href: '/collections/s2/items' }],
  });
  const parameters = `?bbox=${encodeURIComponent(REGION.join())}&limit=100`;
  server.documents.set(`/collections/s2/items${parameters}`, { type: 'FeatureCollection', features: items });
  assert.deepEqual(await idsOf('/collections/s2'), ['a', 'b']);
  server.documents.set('/page.json', { hello: 1 });
  assert.equal(await failure({ stac: { url: `${server.url}/page.json` } }), 'TW_STAC_BAD_DOCUMENT');
});
