/** Uploads to `POST /ingest` over real sockets, including broken ones. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import Fastify from 'fastify';
import { registerBodyTimeout } from '../../src/api/plugins/bodies.js';
import { registerErrorHandler } from '../../src/api/plugins/problems.js';
import { safeName } from '../../src/api/routes/ingest.js';
import { Client, httpTransport, JobError } from '../../src/client/index.js';
import { type IngestInputs, type IngestResults, sideFilesOf } from '../../src/ingest/index.js';
import { openNode, type TilewrightNode } from '../../src/node.js';
import type { JobRecord } from '../../src/storage/index.js';
import { tar, zip } from '../support/archives.js';
import { atEnd } from '../support/at-end.js';
import { ingest } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { writeTestScene } from '../support/scenes.js';
import { smallDisk } from '../support/small-disk.js';
import { tempFolder } from '../support/temp.js';

const OPTIONS = {
  collection: 'test',
  datetime: '2024-06-01T10:00:00Z',
  scale: 0.0001,
  maskBand: 5,
  precision: 6,
};

async function served(t: TestContext, config: object = {}) {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await openNode({ data, memory: 256e6, cores: 2, ...config });
  atEnd(t, () => node.close());
  const url = await node.listen('127.0.0.1', 0);
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  return { folder, data, node, url, scene, client: new Client(httpTransport(url)) };
}

/** Sends a file as `ingest --upload` does. The same scene from the disk of the server must then be unchanged. */
async function sentWithSideFiles(
  { node, client }: Awaited<ReturnType<typeof served>>,
  path: string,
  options = {},
) {
  const inputs = { collection: 'beside', datetime: '2024-06-01', ...options };
  const { results } = await client.upload<IngestResults>(path, inputs, {}, await sideFilesOf(path));
  const here = await ingest(node, { href: path, ...inputs });
  assert.deepEqual(
    here.scenes.map(({ id, unchanged }) => [id, unchanged]),
    results.scenes.map(({ id }) => [id, true]),
  );
  return results.scenes[0]!;
}

test('a file is sent with the mask, the .aux.xml, the STAC Item and the ENVI header beside it', async (t) => {
  const server = await served(t);
  const { folder } = server;
  const path = await writeRaster(join(folder, 'Zürich ö.tif'));
  const whole = await sentWithSideFiles(server, path, { precision: 6 });
  const mask = Uint8Array.from({ length: 64 * 64 }, (_, i) => (i % 64 < 16 ? 255 : 0));
  await writeRaster(`${path}.msk`, { dataType: 'uint8', bands: [mask] });
  const assets = { a: { href: './Zürich ö.tif' }, b: { href: './other.tif' } };
  const item = { type: 'Feature', stac_version: '1.0.0', id: 'item', properties: {}, assets };
  await writeFile(join(folder, 'Zürich ö.json'), JSON.stringify(item));
  const pam = '<PAMDataset><PAMRasterBand band="1"><NoDataValue>7</NoDataValue></PAMRasterBand></PAMDataset>';
  await writeFile(`${path}.aux.xml`, pam);
  const masked = await sentWithSideFiles(server, path, { bands: { red: 1 } });
  assert.equal(masked.id, 'item_a');
  assert.ok(masked.tiles < whole.tiles, `${masked.tiles} of ${whole.tiles}`);

  await writeFile(join(folder, 'cube.bil'), Buffer.alloc(64 * 64, 7));
  const header = [
    'samples = 64',
    'lines = 64',
    'bands = 1',
    'data type = 1',
    'interleave = bil',
    'header offset = 0',
  ];
  const place = 'map info = {UTM, 1, 1, 500000, 5300000, 10, 10, 33, North, WGS-84}';
  await writeFile(join(folder, 'cube.hdr'), ['ENVI', ...header, place].join('\n'));
  for (const name of ['cube.bil', 'cube.hdr'])
    assert.ok((await sentWithSideFiles(server, join(folder, name))).tiles > 0);
});

test('an archive with the name of one of its files loses none of its files', async (t) => {
  const { folder, client } = await served(t);
  const names = ['a.tif', 'a.nir.tif'];
  const entries = await Promise.all(
    names.map(async (name) => ({ name, content: await readFile(await writeRaster(join(folder, name))) })),
  );
  const path = join(folder, 'a.tif.tar');
  await writeFile(path, tar(entries));
  const inputs = { collection: 'several', datetime: '2024-06-01', precision: 6 };
  const { results } = await client.upload<IngestResults>(path, inputs);
  assert.equal(results.scenes.length, 2);
});

/** Waits until the files of all uploads are removed. */
async function scratchIsEmpty(data: string): Promise<void> {
  while ((await readdir(join(data, 'scratch')).catch(() => [])).length > 0) await sleep(10);
}

const tiles = async (node: TilewrightNode) => (await node.server.inject('/search')).json().numberMatched;

test('an upload that is interrupted or removed is reported at the client, without folders of the server', async (t) => {
  const { node, data, client, scene } = await served(t);
  await client.upload(scene, OPTIONS);
  const { features } = (await node.server.inject('/search?limit=1')).json();
  const { pathname } = new URL(features[0].assets['10m'].href);
  const stored = (await readdir(data, { recursive: true })).find(
    (file) => file.includes(features[0].id) && file.endsWith('10m.tif'),
  );
  assert.ok(stored);
  const refused = async (url: string, code: string) => {
    const { statusCode, body } = await node.server.inject(url);
    assert.deepEqual([statusCode, JSON.parse(body).code], [500, code]);
    assert.ok(!body.includes(data), body);
  };
  for (const harm of [() => writeFile(join(data, stored), 'xx'), () => rm(join(data, stored))]) {
    await harm();
    await refused(pathname, 'TW_API_TILE_FILE');
    await refused(`/preview/${features[0].id}.png`, 'TW_IMAGERY_TILE_FILE');
  }
});

test('an uploaded file becomes tiles with its options, and is removed', async (t) => {
  const { node, data, client, scene } = await served(t);
  const options = { ...OPTIONS, bands: { rot: 3, tief: 4 } };
  const { results } = await client.upload<IngestResults>(scene, options);
  assert.equal(
    results.scenes[0].id,
    'scene_20240601T100000Z',
    'the name that was sent is the stem of the id',
  );
  assert.equal(await tiles(node), results.tiles);
  const [item] = (await client.search({ limit: 1 })).features as unknown as {
    assets: Record<string, { 'eo:bands': { name: string }[] }>;
  }[];
  assert.deepEqual(
    item.assets['10m']['eo:bands'].map((band) => band.name),
    ['blue', 'green', 'rot', 'tief'],
  );
  await scratchIsEmpty(data);
  const broken = join(data, '..', 'broken.tif');
  await writeFile(broken, 'no');
  await assert.rejects(client.upload(broken, OPTIONS), (error) => {
    assert.ok(error instanceof JobError && error.code === 'TW_INGEST_ALL_FAILED');
    assert.match(error.message, /the only input failed: broken.tif/);
    assert.equal((error.results as IngestResults).failed[0].code, 'TW_RASTER_NOT_TIFF');
    return true;
  });
  await scratchIsEmpty(data);
});

test('messages and records contain the name of the upload, and no folder of the server', async (t) => {
  const { node, data, scene } = await served(t);
  const send = async (filename: string, payload: Buffer, options: Record<string, string> = {}) => {
    const headers = { 'content-type': 'application/octet-stream' };
    const query = new URLSearchParams({ filename, ...options });
    const answer = await node.server.inject({
      method: 'POST',
      url: `/ingest?${query}`,
      payload,
      headers,
    });
    const id = await waited(node, answer.json().jobID);
    return (await node.storage.catalogue.jobs.get(id)) as JobRecord;
  };
  const whole = await readFile(scene);
  const cut = whole.subarray(0, whole.length / 2);
  const options = { collection: 'test', datetime: '2024-06-01', precision: '6' };
  const jobs = {
    'Büro/a $& b.tif': await send('Büro/a $& b.tif', cut, options),
    'some.zip': await send('some.zip', zip([{ name: 'in/a.tif', content: cut }]), options),
    'two.zip': await send(
      'two.zip',
      zip(['a.tif', 'b.tif'].map((name) => ({ name, content: cut }))),
      options,
    ),
    'broken.zip': await send('broken.zip', zip([{ name: 'a' }]).subarray(0, 60), options),
    'none.tif': await send('none.tif', whole, { ...options, nodata: '7', maskBand: '99' }),
    'cut.tif.gz': await send('cut.tif.gz', gzipSync(cut), options),
    'day_20240602.tif.gz': await send('day_20240602.tif.gz', gzipSync(whole), {
      collection: 'test',
      precision: '6',
    }),
    'named_20240601.tif': await send('named_20240601.tif', whole, { collection: 'test', precision: '6' }),
  };
  for (const [name, job] of Object.entries(jobs)) {
    const text = JSON.stringify(job);
    assert.ok(!text.includes(data) && !text.includes('scratch'), text);
    assert.deepEqual((job.inputs as IngestInputs).paths, [name]);
    const [failure] = (job.results as IngestResults).failed;
    if (failure) assert.ok(failure.message.includes(name), failure.message);
  }
  const [unzipped] = (jobs['day_20240602.tif.gz'].results as IngestResults).scenes;
  assert.equal(unzipped!.id, 'day_20240602_20240602T000000Z');
  const { failed } = jobs['two.zip'].results as IngestResults;
  assert.deepEqual(failed.map(({ path }) => path).sort(), ['two.zip/a.tif', 'two.zip/b.tif']);
});

/** The id of a job when it has ended. */
async function waited(node: TilewrightNode, id: string): Promise<string> {
  for (;;) {
    const { status } = (await node.server.inject(`/jobs/${id}`)).json();
    if (status !== 'accepted' && status !== 'running') return id;
    await sleep(10);
  }
}

test('an upload that cannot be used is refused with a code and leaves nothing', async (t) => {
  const { node, data, client, folder, scene } = await served(t, { maxUpload: 1e6 });
  const send = async (query: string, payload: Buffer | string = 'x', type = 'application/octet-stream') => {
    const headers = { 'content-type': type };
    const answer = await node.server.inject({ method: 'POST', url: `/ingest${query}`, payload, headers });
    assert.match(String(answer.headers['content-type']), /application\/problem\+json/, answer.body);
    await scratchIsEmpty(data);
    return [answer.statusCode, answer.json().code];
  };
  assert.deepEqual(await send(''), [400, 'TW_API_BAD_REQUEST']);
  assert.deepEqual(await send('?filename=a.tif', ''), [400, 'TW_API_BAD_REQUEST'], 'an empty file');
  assert.deepEqual(await send('?filename=a.tif&nodata=many'), [400, 'TW_API_BAD_REQUEST']);
  assert.deepEqual(await send('?filename=a.tif&bands=red'), [400, 'TW_API_BAD_REQUEST']);
  assert.deepEqual(await send('?filename=a.tif&paths=/etc/passwd'), [400, 'TW_API_BAD_REQUEST']);
  assert.deepEqual(await send('?precision=6', '{"href":"x"}', 'application/json'), [
    400,
    'TW_API_BAD_REQUEST',
  ]);
  assert.deepEqual(await send('?filename=a', 'x', 'text/plain'), [415, 'TW_API_BAD_REQUEST']);
  assert.deepEqual(await send('?filename=a', Buffer.alloc(1_000_001)), [413, 'TW_API_TOO_LARGE']);

  const large = join(folder, 'large.tif');
  await writeFile(large, Buffer.alloc(3e6));
  await assert.rejects(client.upload(large, OPTIONS), { code: 'TW_API_TOO_LARGE', status: 413 });
  await assert.rejects(client.upload(folder, OPTIONS), { code: 'TW_CLIENT_NO_FILE', message: /folder/ });
  await assert.rejects(client.upload(join(folder, 'none'), OPTIONS), { code: 'TW_CLIENT_NO_FILE' });
  assert.equal((await client.upload<IngestResults>(scene, OPTIONS)).results.failed.length, 0);
});

/** Sends text and gives the socket; `answer` is all that comes back until the other side closes. */
function speak(url: string, ...parts: (string | Buffer)[]): { socket: Socket; answer: Promise<string> } {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.setEncoding('latin1').on('data', (more) => {
    text += more;
  });
  socket.on('error', () => undefined);
  for (const part of parts) socket.write(part);
  return { socket, answer: once(socket, 'close').then(() => text) };
}

const HEAD =
  'POST /ingest?filename=scene.tif HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/octet-stream\r\n';

test('a file that is too long is refused because of its Content-Length, or when it exceeds the limit', async (t) => {
  const { url, data } = await served(t, { maxUpload: 1e6 });
  const early = speak(
    url,
    `${HEAD}connection: close\r\nexpect: 100-continue\r\ncontent-length: 1000001\r\n\r\n`,
  );
  assert.match(await early.answer, /^HTTP\/1.1 413 [\s\S]*TW_API_TOO_LARGE/);
  const chunk = Buffer.alloc(700_000, 1);
  const size = `${chunk.length.toString(16)}\r\n`;
  const late = speak(
    url,
    `${HEAD}transfer-encoding: chunked\r\n\r\n`,
    size,
    chunk,
    '\r\n',
    size,
    chunk,
    '\r\n',
  );
  assert.match(await late.answer, /^HTTP\/1.1 413 [\s\S]*TW_API_TOO_LARGE/, 'and the rest is not waited for');
  await scratchIsEmpty(data);
});

test('JSON that is too long is refused because of its Content-Length, and the client reports why', async (t) => {
  const { url, client } = await served(t);
  const early = speak(
    url,
    'POST /search HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 9600000\r\n\r\n',
  );
  assert.match(await early.answer, /^HTTP\/1.1 413 [\s\S]*TW_API_TOO_LARGE/);
  const ids = (count: number) => ({ ids: Array.from({ length: count }, (_, i) => `${i}`.padStart(96, 'x')) });
  for (const count of [11_000, 100_000, 600_000])
    await assert.rejects(client.search(ids(count)), {
      code: 'TW_API_TOO_LARGE',
      message: /the request is larger than the 1 MB that the server accepts: send less in one request/,
    });
  // Longer than what is sent without asking, and within the limit.
  await assert.rejects(client.search(ids(10_300)), { code: 'TW_QUERY_TOO_COMPLEX' });
});

test('`Expect: 100-continue` is answered, and other expectations are ignored', async (t) => {
  const { url, scene } = await served(t);
  const bytes = await readFile(scene);
  const { socket, answer } = speak(
    url,
    `${HEAD}connection: close\r\nexpect: 100-continue\r\ncontent-length: ${bytes.length}\r\n\r\n`,
  );
  const [leave] = await once(socket, 'data');
  assert.match(leave, /^HTTP\/1.1 100 Continue/);
  socket.write(bytes);
  assert.match(await answer, /HTTP\/1.1 201 Created/);
  const other = speak(
    url,
    'GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nexpect: cake\r\n\r\n',
  );
  assert.match(await other.answer, /^HTTP\/1.1 200 OK/);
});

test('a client that disconnects during an upload leaves no files, and the server continues', async (t) => {
  const { url, data, node } = await served(t);
  const { socket } = speak(url, `${HEAD}content-length: 5000000\r\n\r\n`, Buffer.alloc(1_000_000));
  while ((await readdir(join(data, 'scratch')).catch(() => [])).length === 0) await sleep(5);
  socket.destroy();
  await scratchIsEmpty(data);
  assert.deepEqual((await node.server.inject('/jobs')).json().jobs, []);
  assert.equal((await fetch(`${url}/health`)).status, 200);
});

test('a cancelled job removes its file', async (t) => {
  const { data, client, folder } = await served(t);
  const large = await writeTestScene(join(folder, 'large.tif'), { width: 1500, height: 1500 });
  const controller = new AbortController();
  const hooks = { signal: controller.signal, onProgress: () => controller.abort() };
  await assert.rejects(client.upload(large, OPTIONS, hooks), { code: 'TW_CLIENT_STOPPED' });
  await scratchIsEmpty(data);
});

test('an upload stops at the reserve of the disk', async (t) => {
  const { data, client, scene } = await served(t, { reserve: 1e18 });
  await assert.rejects(client.upload(scene, OPTIONS), { code: 'TW_STORAGE_DISK_LOW', status: 507 });
  await scratchIsEmpty(data);
});

test('a full disk is reported as full, even if the file has arrived', async (t) => {
  const disk = await smallDisk(t, 24);
  if (disk === undefined) return;
  const { url, folder, client } = await served(t, { data: join(disk, 'data'), reserve: 0 });
  const { bavail, bsize } = await statfs(disk);
  await writeFile(join(disk, 'fill'), Buffer.alloc(bavail * bsize));
  // A small file is read to its end before the disk refuses it; a large one is not.
  for (const bytes of [5_000, 3_000_000]) {
    const path = join(folder, `${bytes}.tif`);
    await writeFile(path, Buffer.alloc(bytes, 1));
    await assert.rejects(
      client.upload(path, OPTIONS),
      { code: 'TW_STORAGE_FULL', status: 507 },
      `${bytes} bytes`,
    );
  }
  await rm(join(disk, 'fill'));
  assert.equal((await fetch(`${url}/health`)).status, 200);
  await scratchIsEmpty(join(disk, 'data'));
});

test('the token is checked before the file is read', async (t) => {
  const { url, scene, data } = await served(t, { token: 'right' });
  await assert.rejects(new Client(httpTransport(url)).upload(scene, OPTIONS), {
    code: 'TW_API_UNAUTHORIZED',
  });
  const { results } = await new Client(httpTransport(url, 'right')).upload<IngestResults>(scene, OPTIONS);
  assert.ok(results.tiles > 0);
  await scratchIsEmpty(data);
});

test('a stalled body gets 408, a body that arrives in time is accepted', async (t) => {
  const server = Fastify({ requestTimeout: 0 });
  registerErrorHandler(server);
  registerBodyTimeout(server, { window: 200, least: 10 });
  server.post('/', async () => 'heard');
  server.addContentTypeParser('application/octet-stream', (_request, payload, done) => done(null, payload));
  server.post<{ Body: Readable }>('/file', async ({ body }) => {
    let bytes = 0;
    for await (const chunk of body.iterator({ destroyOnReturn: false })) bytes += chunk.length;
    return `${bytes}`;
  });
  atEnd(t, () => server.close());
  const url = await server.listen({ port: 0 });
  const head =
    'POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n';
  const file = 'POST /file HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/octet-stream\r\n';
  for (const start of [head, file]) {
    const stalled = speak(url, `${start}content-length: 100\r\n\r\n{`);
    const answer = await stalled.answer;
    assert.match(answer, /^HTTP\/1.1 408 /);
    assert.match(answer, /connection: close\r\n/i);
    assert.match(answer, /application\/problem\+json[\s\S]*TW_API_TOO_SLOW/);
  }
  const steady = speak(url, `${head}content-length: 102\r\n\r\n"`);
  for (let i = 0; i < 10; i++) {
    await sleep(60);
    steady.socket.write('0123456789');
  }
  steady.socket.write('"');
  assert.match(await steady.answer, /heard/, 'longer than the window in all');
});

test('only the last part of a name is kept, and only its safe characters', () => {
  assert.equal(safeName('../../etc/passwd'), 'passwd');
  assert.equal(safeName('C:\\scenes\\S2A é.SAFE.zip'), 'S2A é.SAFE.zip');
  assert.equal(safeName('..'), 'upload');
  assert.equal(safeName('-of "a"\n<b>.tif'), 'of -a-b-.tif');
  assert.equal(Buffer.byteLength(safeName('😀é'.repeat(300))) <= 200, true);
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      assert.match(safeName(name), /^[\p{L}\p{N}_][\p{L}\p{M}\p{N} ._()+,=@-]*$/u);
      assert.ok(Buffer.byteLength(safeName(name)) <= 200);
    }),
    { seed: 42 },
  );
});
