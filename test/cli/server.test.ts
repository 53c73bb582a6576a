/** If a server has a data folder open, commands use that server. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, watch } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { writeSafe } from '../../data-samples/index.js';
import { openNode } from '../../src/node.js';
import { atEnd } from '../support/at-end.js';
import { finished, start, tilewright } from '../support/command.js';
import { freePort } from '../support/s3.js';
import { SCENE_FLAGS, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

const hasAddress = (wanted: string) =>
  Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === wanted));

test('commands use the server that has the folder open, and it stops cleanly', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const server = start(['serve', '--data', data, '--port', '0', '--format', 'json', '--token', 'for-others']);
  atEnd(t, () => server.kill('SIGKILL'));
  const end = finished(server);
  const [first] = (await once(server.stdout as NodeJS.ReadableStream, 'data')) as [string];
  const { url } = JSON.parse(first);

  const scene = await writeTestScene(join(folder, 'scene.tif'));
  const ingest = ['ingest', scene, '--datetime', '2024-06-01T10:00:00Z', ...SCENE_FLAGS];
  const local = await tilewright(...ingest, '--data', data);
  assert.equal(local.code, 0, local.stderr);
  assert.ok(local.stdout.includes(url), 'it says where the tiles are');

  const remote = await tilewright('search', '--server', url, '--format', 'json');
  const here = await tilewright('search', '--data', data, '--format', 'json');
  assert.ok(JSON.parse(remote.stdout).numberMatched > 0);
  assert.equal(JSON.parse(remote.stdout).numberMatched, JSON.parse(here.stdout).numberMatched);
  assert.equal((await tilewright('verify', '--data', data)).code, 0);

  const half = ['--filter', 'pixel_coverage > 50', '--sort', '-pixel_coverage', '--format', 'json'];
  const { features, numberMatched } = JSON.parse(
    (await tilewright('search', '--server', url, ...half)).stdout,
  );
  const covers = features.map((one: { properties: object }) => Object(one.properties).pixel_coverage);
  assert.ok(numberMatched < JSON.parse(here.stdout).numberMatched && covers.at(-1) > 50);
  assert.deepEqual(
    covers,
    covers.toSorted((a: number, b: number) => b - a),
  );
  const wrong = await tilewright('search', '--server', url, '--filter', 'pixel_coverage >');
  assert.match(wrong.stderr, /character 17: expected a value/);

  const stranger = await tilewright(...ingest, '--server', url);
  assert.equal(stranger.code, 1);
  assert.match(stranger.stderr, /pass it with --token.*\[TW_API_UNAUTHORIZED\]/);

  server.kill('SIGTERM');
  const { code, stderr } = await end;
  assert.equal(code, 0, stderr);
  assert.match(stderr, /"msg":"stopped; no unfinished work"/);
  const after = await tilewright('search', '--data', data, '--format', 'json');
  assert.equal(JSON.parse(after.stdout).numberMatched, JSON.parse(here.stdout).numberMatched);
});

/** Paths of the pages and of all files that they name, also the scripts that scripts import. */
async function filesOfPages(url: string, pages: string[]): Promise<string[]> {
  const paths = new Set(pages);
  for (const path of paths) {
    const response = await fetch(url + path);
    assert.equal(response.status, 200, path);
    const text = await response.text();
    if (!/html|javascript/.test(response.headers.get('content-type')!) || text.length > 100_000) continue;
    for (const [, name = ''] of text.matchAll(/(?:href|src|from) ?=?"?'?((?:\.\/|map\/|docs\/)[\w./-]+)/g))
      paths.add(new URL(name, url + path).pathname);
  }
  return [...paths];
}

test('the command serves its pages with all their files', async (t) => {
  const server = start(['serve', '--data', await tempFolder(t), '--port', '0', '--format', 'json']);
  atEnd(t, () => server.kill('SIGKILL'));
  const [first] = (await once(server.stdout as NodeJS.ReadableStream, 'data')) as [string];
  const paths = await filesOfPages(JSON.parse(first).url, ['/map', '/docs']);
  for (const path of [
    '/map/browser-page.js',
    '/map/browser-requests.js',
    '/map/leaflet.js',
    '/docs/docs-page-script.js',
  ])
    assert.ok(paths.includes(path), `${path} is not among ${paths}`);
  assert.ok(paths.length > 15, String(paths));
});

/** Starts a server with further arguments, and sends it SIGTERM when `moment` resolves. */
async function terminated(
  t: TestContext,
  args: string[],
  moment: (data: string, url: string) => Promise<unknown>,
) {
  const data = await tempFolder(t);
  const port = await freePort();
  const reached = moment(data, `http://127.0.0.1:${port}`);
  const server = start(['serve', '--data', data, '--port', `${port}`, ...args]);
  atEnd(t, () => server.kill('SIGKILL'));
  const end = finished(server);
  await reached;
  server.kill('SIGTERM');
  return { data, ...(await end) };
}

/** The first file in the data folder shows that the server is being opened. */
const firstFile = async (data: string) => {
  const watcher = watch(data);
  await once(watcher, 'change');
  watcher.close();
};

const firstReady = async (_data: string, url: string) => {
  const isReady = () =>
    fetch(`${url}/ready`).then(
      ({ status }) => status === 200,
      () => false,
    );
  while (!(await isReady())) await sleep(2);
};

test('SIGTERM during the start stops the server', { timeout: 60_000 }, async (t) => {
  const store = await tempFolder(t);
  const alone: string[] = [];
  const clustered = ['--store', pathToFileURL(store).href];
  for (const args of [alone, clustered]) {
    const { data, code, signal, stderr } = await terminated(t, args, firstFile);
    assert.deepEqual([code, signal], [0, null], stderr);
    assert.ok(!existsSync(join(data, 'lock')), 'the folder is free');
  }
});

test('a cancelled start releases the data folder', async (t) => {
  const data = await tempFolder(t);
  const store = await tempFolder(t);
  const cluster = {
    ...{ store: pathToFileURL(store).href, etcd: [], name: 'default', advertise: 'http://127.0.0.1:1' },
    ...{ zone: 'default', weight: 1, secrets: ['shared'] },
  };
  const config = { data, memory: 1e9, cores: 1, reserve: 0, cluster };
  const stop = new AbortController();
  const reason = new Error('stop');
  void firstFile(data).then(() => stop.abort(reason));
  await assert.rejects(openNode({ ...config, signal: stop.signal }), (error) => error === reason);
  await (await openNode(config)).close();
});

test('SIGTERM with the first answer that the server is ready stops it', { timeout: 60_000 }, async (t) => {
  const { code, signal, stderr } = await terminated(t, [], firstReady);
  assert.deepEqual([code, signal], [0, null], stderr);
});

test('--upload sends files to a server that cannot see them, and names those that fail', async (t) => {
  const folder = await tempFolder(t);
  const args = [
    'serve',
    '--data',
    join(folder, 'data'),
    '--port',
    '0',
    '--format',
    'json',
    '--token',
    'word',
  ];
  const server = start(args);
  atEnd(t, () => server.kill('SIGKILL'));
  const [first] = (await once(server.stdout as NodeJS.ReadableStream, 'data')) as [string];
  const target = ['--server', JSON.parse(first).url, '--token', 'word', '--format', 'json'];
  const [tifs, missing] = [join(folder, 'tifs'), join(folder, 'missing.tif')];
  await mkdir(join(tifs, 'empty'), { recursive: true });
  const scene = await writeTestScene(join(tifs, 'scene.tif'));
  const other = await writeTestScene(join(tifs, 'other.tif'));
  const { path: product } = await writeSafe(folder, { level: 'L1C', size: { width: 120, height: 120 } });
  const flags = ['--datetime', '2024-06-01T10:00:00Z', '--bands', 'red=3,nir=4', ...SCENE_FLAGS, ...target];
  const { code, stdout, stderr } = await tilewright('ingest', '--upload', missing, product, tifs, ...flags);
  assert.equal(code, 3);
  const results = JSON.parse(stdout);
  assert.deepEqual(
    results.failed.map((one: { path: string; code: string }) => [one.path, one.code]),
    [missing, product].map((path) => [path, 'TW_CLIENT_NO_FILE']),
  );
  assert.match(stderr, /product: put it into a zip/);
  assert.deepEqual(results.passedOver, [`${join(tifs, 'empty')}/`]);
  assert.deepEqual(results.scenes.map(({ id }: { id: string }) => id.split('_')[0]).sort(), [
    'other',
    'scene',
  ]);
  assert.ok(stderr.includes(`sending ${other}`));
  assert.ok(results.tiles > 0);
  const found = JSON.parse((await tilewright('search', ...target)).stdout);
  assert.equal(found.numberMatched, results.tiles);
  const here = await tilewright('ingest', scene, ...flags);
  assert.match(here.stderr, /\[TW_API_OUTSIDE_FOLDER\]/, 'without --upload the path is one of the server');
});

test('a node that listens on an IPv6 address tells others a URL with brackets', {
  skip: !hasAddress('::1') && 'this machine has no IPv6',
}, async (t) => {
  const folder = await tempFolder(t);
  const store = join(folder, 'store');
  await mkdir(store);
  const port = await freePort();
  const place = ['--data', join(folder, 'data'), '--host', '::1', '--port', `${port}`];
  const server = start(['serve', ...place, '--store', pathToFileURL(store).href, '--format', 'json']);
  atEnd(t, () => server.kill('SIGKILL'));
  server.stderr?.resume();
  const [first] = (await once(server.stdout as NodeJS.ReadableStream, 'data')) as [string];
  const { url } = JSON.parse(first);
  const { nodes } = (await (await fetch(`${url}/cluster/nodes`)).json()) as { nodes: { url: string }[] };
  assert.deepEqual(
    nodes.map((node) => node.url),
    [`http://[::1]:${port}`],
  );
});

test('two commands on one folder: the second reports the process that has it open', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const scene = await writeTestScene(join(folder, 'scene.tif'), { width: 1500, height: 1500 });
  const ingest = ['ingest', scene, '--datetime', '2024-06-01T10:00:00Z', '--data', data, ...SCENE_FLAGS];
  const both = await Promise.all([tilewright(...ingest), tilewright(...ingest)]);
  const codes = both.map(({ code }) => code).sort();
  assert.deepEqual(codes, [0, 1], both.map(({ stderr }) => stderr).join('\n'));
  assert.match(both.map(({ stderr }) => stderr).join(''), /\[TW_STORAGE_LOCKED\]/);
});

test('Ctrl-C cancels the job, keeps its finished part and leaves no incomplete files', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const scene = await writeTestScene(join(folder, 'scene.tif'), { width: 2000, height: 2000 });
  const ingest = start([
    'ingest',
    scene,
    '--datetime',
    '2024-06-01T10:00:00Z',
    '--data',
    data,
    ...SCENE_FLAGS,
  ]);
  const end = finished(ingest);
  while (!existsSync(join(data, 'tiles', 'geohash'))) await sleep(20);
  ingest.kill('SIGINT');
  const { signal, stderr } = await end;
  assert.equal(signal, 'SIGINT', 'a shell loop that runs the command ends');
  assert.match(stderr, /stopped: job .* \[TW_CLIENT_STOPPED\]/);
  const found = await tilewright('search', '--data', data, '--format', 'json');
  assert.equal(JSON.parse(found.stdout).numberMatched, 0);
  assert.equal((await tilewright('verify', '--data', data)).code, 0);
});
