/** Remote files of other kinds: JPEG 2000, hosts without ranges, single files, and Items that a request holds. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import type { Bbox } from '../../src/grid/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import type { Fault } from '../support/range-server.js';
import { writeRaster } from '../support/rasters.js';
import { remoteCatalog, SIDE } from '../support/remote-catalog.js';
import { runRequest } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';

const REGION: Bbox = [15.03, 47.75, 15.12, 47.8];
const OPTIONS = { bbox: REGION, precision: 5 };

async function setUp(t: TestContext) {
  const catalog = await remoteCatalog(t);
  const hosts = { hosts: [catalog.server.host], anyPublic: false };
  const node = await testNode(t, join(await tempFolder(t), 'data'), { hosts, cores: 1 });
  return { ...catalog, hosts, node };
}

/** Also opens a node that reads the same files on the disk. */
async function setUpBoth(t: TestContext) {
  const { hosts, ...place } = await setUp(t);
  const local = await testNode(t, join(await tempFolder(t), 'local'), { hosts, cores: 1 });
  return { ...place, local };
}

async function contents(node: TilewrightNode) {
  return (await tilesOf(node))
    .map(({ id, coverage, cloudCover, groups }) => ({ id, coverage, cloudCover, groups }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

async function isSame(node: TilewrightNode, local: TilewrightNode) {
  const found = await contents(node);
  assert.ok(found.length > 0);
  assert.deepEqual(found, await contents(local));
  assert.deepEqual(await readdir(join(node.storage.dir, 'scratch')), []);
}

/** Answers requests for files as a host that knows no ranges. */
const withoutRanges =
  (folder: string): Fault =>
  async ({ url = '' }, response, seen) => {
    if (!url.endsWith('.tif')) return false;
    assert.ok(seen);
    response.writeHead(200, { 'content-type': 'image/tiff' }).end(await readFile(join(folder, url)));
    return true;
  };

test('files of a host without ranges are downloaded once, as a whole', async (t) => {
  const { node, local, server, folder, api } = await setUpBoth(t);
  server.fault = withoutRanges(folder);
  const { failed } = await ingest(node, { stac: { url: api }, ...OPTIONS });
  assert.deepEqual(failed, []);
  const files = server.requests.filter(({ path }) => path.endsWith('.tif'));
  // One request finds that the host sends the whole file.
  assert.equal(files.length, 2 * 3);
  await ingest(local, { href: join(folder, 'a'), ...OPTIONS });
  await isSame(node, local);
});

test('a file that is sent compressed is downloaded as a whole and decompressed', async (t) => {
  const { node, local, server, folder, api } = await setUpBoth(t);
  await ingest(local, { href: join(folder, 'a'), ...OPTIONS });
  // The best quality, the default, takes seconds for a file.
  const brotli = (bytes: Buffer) =>
    brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
  const cases: [encoding: string, encode: (bytes: Buffer) => Buffer, code?: string][] = [
    ['gzip', gzipSync],
    ['X-GZip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotli],
    ['gzip, br', (bytes) => brotli(gzipSync(bytes))],
    ['identity', (bytes) => bytes],
    ['gzip', (bytes) => gzipSync(bytes).subarray(0, -9), 'TW_REMOTE_BAD_ENCODING'],
    ['br', (bytes) => bytes, 'TW_REMOTE_BAD_ENCODING'],
    ['compress', (bytes) => bytes, 'TW_REMOTE_BAD_ENCODING'],
    ['gzip, compress', (bytes) => bytes, 'TW_REMOTE_BAD_ENCODING'],
  ];
  for (const isInParts of [false, true])
    for (const [encoding, encode, code] of cases.filter((_, i) => !isInParts || i % 3 === 0)) {
      const encoded = new Map<string, Buffer>();
      server.fault = async ({ url = '' }, response, { range }) => {
        if (!url.endsWith('.tif')) return false;
        const bytes = encoded.get(url) ?? encode(await readFile(join(folder, url)));
        encoded.set(url, bytes);
        const headers = { 'content-type': 'image/tiff', 'content-encoding': encoding, etag: '"1"' };
        // As object stores, which send parts of what they store.
        const [, first, last] = (isInParts && /^bytes=(\d+)-(\d+)$/.exec(range ?? '')) || [];
        const part = first === undefined ? bytes : bytes.subarray(Number(first), Number(last) + 1);
        response.writeHead(first === undefined ? 200 : 206, {
          ...headers,
          ...(first !== undefined && {
            'content-range': `bytes ${first}-${Number(first) + part.length - 1}/${bytes.length}`,
          }),
        });
        response.end(part);
        return true;
      };
      const name = `${encoding}, ${isInParts}, ${code}`;
      const { failed } = await ingest(node, { stac: { url: api }, ...OPTIONS });
      if (code === undefined) {
        assert.deepEqual(failed, [], name);
        await isSame(node, local);
        // The next case finds an empty node.
        const { statusCode } = await node.server.inject({
          ...{ method: 'DELETE', url: '/collections/sentinel-2-l2a' },
          headers: { authorization: `Bearer ${node.ownerSecret}` },
        });
        assert.equal(statusCode, 204);
      } else if (!isInParts)
        assert.deepEqual(
          failed.map((one: { code: string }) => one.code),
          [code],
          name,
        );
      else assert.match(failed[0].code, /TW_REMOTE_BAD_(ENCODING|RANGE)/, name);
    }
});

test('a download that breaks off starts again', async (t) => {
  const { node, local, server, folder, api } = await setUpBoth(t);
  let broken = 0;
  server.fault = async (request, response, seen) => {
    const { url = '' } = request;
    if (!url.endsWith('red.tif') || seen.range !== undefined || broken++ > 0)
      return withoutRanges(folder)(request, response, seen);
    const bytes = await readFile(join(folder, url));
    response.writeHead(200, { 'content-length': bytes.length });
    response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
    return true;
  };
  const { failed } = await ingest(node, { stac: { url: api, assets: ['red'] }, ...OPTIONS });
  assert.deepEqual([failed, broken], [[], 2]);
  server.fault = undefined;
  await ingest(local, { stac: { url: api, assets: ['red'] }, ...OPTIONS });
  await isSame(node, local);
});

test('JPEG 2000 is downloaded as a whole, and a dry run reads only its start', {
  skip: !hasGdal,
}, async (t) => {
  const { node, local, server, folder, items, api } = await setUpBoth(t);
  const red = join(folder, 'a', 'red.jp2');
  await promisify(execFile)('gdal_translate', [
    ...['-q', '-of', 'JP2OpenJPEG', '-co', 'QUALITY=100', '-co', 'REVERSIBLE=YES'],
    ...[join(folder, 'a', 'red.tif'), red],
  ]);
  const assets = { red: { href: `${server.url}/a/red.jp2`, type: 'image/jp2', roles: ['data'] } };
  items[0] = { ...items[0], assets };
  const inputs = { stac: { url: api }, ...OPTIONS };
  const { scenes } = await ingest(node, { ...inputs, dryRun: true });
  const { size } = await stat(red);
  assert.deepEqual((scenes[0] as { fetch?: object }).fetch, {
    requests: Math.ceil(size / (8 << 20)),
    bytes: size,
  });
  assert.equal(server.requests.filter(({ path }) => path.endsWith('.jp2')).length, 1);
  assert.deepEqual((await ingest(node, inputs)).failed, []);

  const alone = join(await tempFolder(t), 'a');
  await mkdir(alone);
  await copyFile(red, join(alone, 'red.jp2'));
  const document = { ...items[0], assets: { red: { ...assets.red, href: './red.jp2' } } };
  await writeFile(join(alone, 'item.json'), JSON.stringify(document));
  await ingest(local, { href: alone, ...OPTIONS });
  await isSame(node, local);
});

test('a single file is read by its address like one on the disk', async (t) => {
  const { node, local, server, folder } = await setUpBoth(t);
  const options = { ...OPTIONS, datetime: '2024-06-01', collection: 'mine' };
  const href = `${server.url}/a/red.tif`;
  const { failed, scenes } = await ingest(node, { href, ...options });
  assert.deepEqual([failed, scenes.map(({ id }) => id)], [[], ['red_20240601T000000Z']]);
  // Beside the original lies an Item.
  const alone = join(await tempFolder(t), 'red.tif');
  await copyFile(join(folder, 'a', 'red.tif'), alone);
  await ingest(local, { href: alone, ...options });
  await isSame(node, local);
  server.requests.length = 0;
  const again = await ingest(node, { href, ...options });
  assert.deepEqual([again.scenes[0]!.unchanged, server.requests.length], [true, 1]);
});

test('a request can hold Items, and a failed address is retried as it was given', async (t) => {
  const { node, local, server, folder, items } = await setUpBoth(t);
  await ingest(node, { stac: { items, assets: ['red', 'nir', 'scl'] }, ...OPTIONS });
  await ingest(local, { href: join(folder, 'a'), ...OPTIONS });
  await isSame(node, local);
  const missing = `${server.url}/a/missing.tif?sig=hush`;
  const href = [`${server.url}/a/nir.tif`, missing];
  const job = await runRequest(node, '/ingest', { href, ...OPTIONS, datetime: '2024', collection: 'mine' });
  const { failed } = job.results as { failed: { path: string; code: string }[] };
  assert.deepEqual(
    failed.map(({ path, code }) => [path, code]),
    [[`${server.url}/a/missing.tif`, 'TW_REMOTE_REFUSED']],
  );
  const { body } = await node.server.inject({
    method: 'POST',
    url: `/jobs/${job.id}/retry`,
    headers: { authorization: `Bearer ${node.ownerSecret}` },
  });
  assert.match(body, /jobID/);
});

test('an Item whose document changes while its files do not is opened once', async (t) => {
  const { node, server, items, api } = await setUp(t);
  const inputs = { stac: { url: api }, ...OPTIONS };
  await ingest(node, inputs);
  const before = await contents(node);
  Object.assign(items[0]!.properties as object, { updated: '2024-09-01T00:00:00Z' });
  const counts: number[] = [];
  for (let run = 0; run < 2; run++) {
    server.requests.length = 0;
    const { scenes } = await ingest(node, inputs);
    assert.equal(scenes[0]!.unchanged, true);
    counts.push(server.requests.filter(({ path }) => path.endsWith('.tif')).length);
  }
  assert.ok(counts[0]! > 0);
  assert.equal(counts[1], 0);
  assert.deepEqual(await contents(node), before);
});

test('tiles link to the Item and the licence of the archive', async (t) => {
  const { node, server, items, api } = await setUp(t);
  const self = `${server.url}/items/a`;
  const licence = 'https://example.org/terms';
  items[0]!.links = [
    { rel: 'self', href: `${self}?sig=hush` },
    { rel: 'license', href: licence },
  ];
  await ingest(node, { stac: { url: api }, ...OPTIONS });
  const [tile] = await tilesOf(node);
  const { body } = await node.server.inject(`/collections/${tile!.collection}/items/${tile!.id}`);
  const { links } = JSON.parse(body) as { links: { rel: string; href: string }[] };
  const hrefOf = (wanted: string) => links.find(({ rel }) => rel === wanted)?.href;
  assert.deepEqual([hrefOf('via'), hrefOf('license')], [self, licence]);
});

test('an offset that leaves land below zero is doubted', async (t) => {
  const { node, folder, items, api } = await setUp(t);
  const dark = (side: number) => Uint16Array.from({ length: side * side }, (_, i) => 300 + (i % 600));
  const red = { width: SIDE, height: SIDE, bands: [dark(SIDE)], nodata: 0 };
  await writeRaster(join(folder, 'a', 'red.tif'), red);
  const warnings = async (isApplied: boolean) => {
    Object.assign(items[0]!.properties as object, { 'earthsearch:boa_offset_applied': isApplied });
    return (await ingest(node, { stac: { url: api }, ...OPTIONS })).scenes[0]!.warnings.join();
  };
  assert.match(await warnings(false), /100 % of the clear pixels.*TW_INGEST_OFFSET_DOUBT/);
  assert.doesNotMatch(await warnings(true), /OFFSET_DOUBT/);
});

/** Faults of a host during the requests for blocks. With a code, the scene fails without a tile; otherwise the tiles are the same. */
const FAULTS: Record<string, { fault: (count: number) => Fault; code?: string }> = {
  'answers 503 and 429': {
    fault: (count) => (_request, response) => {
      if (count % 3 === 2) return false;
      response.writeHead(count % 3 ? 429 : 503, { 'retry-after': '0' }).end();
      return true;
    },
  },
  'cuts connections': {
    fault: (count) => (_request, response) => {
      if (count % 2) return false;
      response.destroy();
      return true;
    },
  },
  'is slow': {
    fault: () => async () => {
      await sleep(300);
      return false;
    },
  },
  'announces more bytes than it sends': {
    fault: (count) => (_request, response, seen) => {
      if (count > 1) return false;
      const [start, end] = rangeOf(seen);
      response.writeHead(206, {
        ...{ 'content-range': `bytes ${start}-${end}/1000000`, 'content-length': 1 + end - start },
        etag: 'other',
      });
      response.write('some', () => response.destroy());
      return true;
    },
    code: 'TW_REMOTE_CHANGED',
  },
  'sends another range': {
    fault: () => (_request, response) => {
      response.writeHead(206, { 'content-range': 'bytes 0-3/1000', etag: ETAG }).end('abcd');
      return true;
    },
    code: 'TW_REMOTE_CHANGED',
  },
  'compresses ranges': {
    fault: () => (_request, response, seen) => {
      const [start, end] = rangeOf(seen);
      response.writeHead(206, {
        ...{ 'content-range': `bytes ${start}-${end}/*`, 'content-encoding': 'gzip' },
        etag: seen.headers['if-match'] as string,
      });
      response.end('x');
      return true;
    },
    code: 'TW_REMOTE_BAD_RANGE',
  },
  'answers with a web page': {
    fault: () => (_request, response, seen) => {
      response.writeHead(200, { 'content-type': 'text/html', etag: seen.headers['if-match'] as string });
      response.end('<html>');
      return true;
    },
    code: 'TW_REMOTE_BAD_RANGE',
  },
  'refuses an expired token': {
    fault: () => (_request, response) => {
      response.writeHead(403).end();
      return true;
    },
    code: 'TW_REMOTE_REFUSED',
  },
};
const ETAG = '"another"';

const rangeOf = ({ range = '' }: { range: string | undefined }) =>
  /(\d+)-(\d+)/.exec(range)!.slice(1).map(Number) as [number, number];

test('a host that fails in the middle of a scene changes no pixel', async (t) => {
  const { local, server, folder, api } = await setUpBoth(t);
  await ingest(local, { href: join(folder, 'a'), ...OPTIONS });
  for (const [name, { fault, code }] of Object.entries(FAULTS))
    await t.test(`it ${name}`, async (t) => {
      const hosts = { hosts: [server.host], anyPublic: false };
      const node = await testNode(t, join(await tempFolder(t), 'data'), { hosts, cores: 1 });
      let count = 0;
      server.fault = (request, response, seen) => {
        const isBlock = seen.path.endsWith('.tif') && !seen.range?.startsWith('bytes=0-');
        return isBlock ? fault(count++)(request, response, seen) : false;
      };
      const job = await runRequest(node, '/ingest', { stac: { url: api }, ...OPTIONS });
      server.fault = undefined;
      if (code === undefined) return isSame(node, local);
      const { failed } = job.results as { failed: { code: string }[] };
      assert.deepEqual([failed.map((one) => one.code), await tilesOf(node)], [[code], []]);
      // A later run needs nothing of the failed one.
      await ingest(node, { stac: { url: api }, ...OPTIONS });
      await isSame(node, local);
    });
});

test('a filter is refused where nothing evaluates it', async (t) => {
  const { node, server, api } = await setUp(t);
  const search = { filter: 'eo:cloud_cover < 8' };
  for (const url of [api, `${server.url}/a/item.json`]) {
    const { error } = await runRequest(node, '/ingest', { stac: { url, ...search }, ...OPTIONS });
    assert.equal(error?.code, 'TW_STAC_NO_FILTER');
  }
});

test('the licence of a collection is that of its tiles, and requested once', async (t) => {
  const { server, items, api, node } = await setUp(t);
  server.documents.set('/collection', { type: 'Collection', id: 'c', license: 'PDDL-1.0', links: [] });
  items[0]!.links = [{ rel: 'collection', href: `${server.url}/collection` }];
  items.push({ ...items[0], id: 'b' });
  await ingest(node, { stac: { url: api }, ...OPTIONS });
  assert.equal(server.requests.filter(({ path }) => path === '/collection').length, 1);
  const collection = await node.storage.catalogue.collections.get('sentinel-2-l2a');
  assert.equal(collection?.license, 'PDDL-1.0');
});

test('an Item without a time fails alone, by its id', async (t) => {
  const { node, items } = await setUp(t);
  const timeless = { ...items[0], id: 'timeless', properties: {} };
  const { failed, scenes } = await ingest(node, { stac: { items: [timeless, items[0]] }, ...OPTIONS });
  assert.deepEqual(
    failed.map(({ path, code }) => [path, code]),
    [['timeless', 'TW_STAC_BAD_DOCUMENT']],
  );
  assert.equal(scenes.length, 1);
});

test('an unknown member of a search is refused with the known ones', async (t) => {
  const { node, api } = await setUp(t);
  const response = await node.server.inject({
    method: 'POST',
    url: '/ingest',
    headers: { authorization: `Bearer ${node.ownerSecret}` },
    payload: { stac: { url: api, collection: 'c' } },
  });
  assert.equal(response.statusCode, 400);
  assert.match(response.json().detail, /stac has no member "collection"; it has url, items, collections, /);
});

test('an Item with too many files fails alone, and messages name it and few of its assets', async (t) => {
  const { node, server, items } = await setUp(t);
  const [item] = items as { id: string; assets: Record<string, object> }[];
  const many = Object.fromEntries(
    Array.from({ length: 1200 }, (_, i) => [`${i}${'x'.repeat(100)}`, item!.assets.red]),
  );
  const features = [{ ...item, id: 'many', assets: many }, item];
  server.documents.set('/items', { type: 'FeatureCollection', features });
  server.requests.length = 0;
  const stac = { url: `${server.url}/items` };
  const { failed, scenes } = await ingest(node, { stac, ...OPTIONS });
  assert.deepEqual(
    failed.map(({ path, code }) => [path, code]),
    [[`${stac.url}#many`, 'TW_INGEST_TOO_MANY_ASSETS']],
  );
  assert.equal(scenes.length, 1);
  const missing = await ingest(node, { stac: { ...stac, assets: ['nir'] }, ...OPTIONS });
  assert.deepEqual(
    missing.failed.map(({ code }) => code),
    ['TW_INGEST_MISSING_ASSET'],
  );
  assert.ok(missing.failed[0]!.message.length < 3000);
});

test('an address with a password is refused before a job stores it', async (t) => {
  const { node, server } = await setUp(t);
  const response = await node.server.inject({
    method: 'POST',
    url: '/ingest',
    headers: { authorization: `Bearer ${node.ownerSecret}` },
    payload: { href: `http://ann:hush@${server.host}/a/red.tif` },
  });
  assert.equal(response.statusCode, 400, response.body);
  assert.doesNotMatch(response.body, /hush/);
});

test('an Item whose calibration is corrected replaces its tiles', async (t) => {
  const { node, items, api } = await setUp(t);
  const { collection: _, ...item } = items[0]!;
  items[0] = { ...item, collection: 'other' };
  const inputs = { stac: { url: api, assets: ['red'] }, ...OPTIONS };
  await ingest(node, inputs);
  const { red } = items[0].assets as { red: { 'raster:bands': { offset: number }[] } };
  red['raster:bands'][0]!.offset = 0;
  const { scenes } = await ingest(node, inputs);
  assert.deepEqual([scenes[0]!.unchanged, scenes[0]!.replaced], [false, true]);
});

test('secrets of the address of a catalog occur in no result', async (t) => {
  const { node, server, items } = await setUp(t);
  server.documents.set('/items.json?token=hush', { type: 'FeatureCollection', features: items });
  const stac = { url: `${server.url}/items.json?token=hush`, assets: ['nothing'] };
  const job = await runRequest(node, '/ingest', { stac, ...OPTIONS });
  assert.equal(job.status, 'failed');
  const { inputs: _, ...record } = job as { inputs?: unknown };
  assert.doesNotMatch(JSON.stringify(record), /hush/);
});

test('an address that is none fails alone', async (t) => {
  const { node, server } = await setUp(t);
  const href = ['s3://a', `${server.url}/a/red.tif`];
  const results = await ingest(node, { href, ...OPTIONS, datetime: '2024', collection: 'mine' });
  assert.deepEqual(
    [results.failed.map(({ code }) => code), results.scenes.length],
    [['TW_REMOTE_BAD_URL'], 1],
  );
});

test('a host that sends no version of a file is asked again when the Item changes', async (t) => {
  const { node, server, items, api, folder } = await setUp(t);
  server.fault = (_request, response) => {
    const send = response.setHeader.bind(response);
    response.setHeader = (name, value) => (name === 'etag' ? response : send(name, value));
    return false;
  };
  const inputs = { stac: { url: api, assets: ['red'] }, ...OPTIONS };
  await ingest(node, inputs);
  const dark = Uint16Array.from({ length: SIDE * SIDE }, () => 700);
  await writeRaster(join(folder, 'a', 'red.tif'), { width: SIDE, height: SIDE, bands: [dark], nodata: 0 });
  Object.assign(items[0]!.properties as object, { updated: '2024-09-01T00:00:00Z' });
  assert.equal((await ingest(node, inputs)).scenes[0]!.replaced, true);
});
