/** The command `ingest --from-stac`: output, kill -9, refusals. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { finished, start, tilewright } from '../support/command.js';
import { COLLECTION, remoteCatalog } from '../support/remote-catalog.js';
import { tempFolder } from '../support/temp.js';

test('a killed ingest continues with the scenes that are not stored', async (t) => {
  const { api, server } = await remoteCatalog(t, { ids: ['a', 'b', 'c'] });
  const data = join(await tempFolder(t), 'data');
  const command = (...more: string[]) => [
    ...[
      'ingest',
      '--from-stac',
      api,
      '--allow-host',
      server.host,
      '--collection',
      COLLECTION,
      '--data',
      data,
    ],
    ...[
      '--bbox',
      '15.06,47.75,15.12,47.8',
      '--precision',
      '5',
      '--bands',
      'red,scl',
      '--into',
      'mine',
      ...more,
    ],
  ];
  const child = start(command());
  const end = finished(child);
  // The last scene is opened when the others are being cut or stored; its files never arrive.
  await new Promise<void>((resolve) => {
    server.fault = async ({ url = '' }) => {
      if (!url.startsWith('/c/')) return false;
      await onlyOneOpen(data, () => child.exitCode === null);
      child.kill('SIGKILL');
      resolve();
      return true;
    };
  });
  await end;
  server.fault = undefined;
  server.requests.length = 0;
  const again = await tilewright(...command('--format', 'json'));
  assert.equal(again.code, 0, again.stderr);
  const { scenes, failed } = JSON.parse(again.stdout);
  assert.deepEqual(failed, []);
  const unchanged = Object.fromEntries(
    scenes.map(({ id, unchanged }: { id: string; unchanged: boolean }) => [id, unchanged]),
  );
  assert.deepEqual(unchanged, { a: true, b: true, c: false });
  const files = new Set(server.requests.map(({ path }) => path).filter((path) => path.endsWith('.tif')));
  assert.deepEqual([...files].sort(), ['/c/red.tif', '/c/scl.tif']);
  assert.equal((await tilewright('verify', '--data', data)).code, 0);
});

/** Waits until only one scene is in progress: the folder of a scene is removed when it is stored. */
async function onlyOneOpen(data: string, isRunning: () => boolean): Promise<void> {
  const open = async () => {
    const [job] = await readdir(join(data, 'scratch'));
    return (await readdir(join(data, 'scratch', job!))).filter((name) => name.startsWith('remote-'));
  };
  while (isRunning() && (await open()).length > 1) await sleep(50);
}

const REGION = ['--bbox', '15.06,47.75,15.12,47.8', '--precision', '5'];

test('an address that is not what the command expects is answered with the right one', async (t) => {
  const { api, server } = await remoteCatalog(t);
  const data = join(await tempFolder(t), 'data');
  const flags = ['--allow-host', server.host, '--data', data, ...REGION];
  const named = await tilewright('ingest', api, ...flags);
  assert.equal(named.code, 1);
  assert.ok(named.stderr.includes(`use --from-stac ${api} [TW_INGEST_CATALOG]`), named.stderr);
  const wrong = await tilewright('ingest', '--from-stac', `${api}/serach`, ...flags);
  assert.equal(wrong.code, 1);
  assert.match(
    wrong.stderr,
    /serach .*answered 404; name the address of the landing page.*TW_STAC_BAD_DOCUMENT/,
  );
});

test('the summary says which scenes are unchanged', async (t) => {
  const { api, server, items } = await remoteCatalog(t, { ids: ['a', 'b'] });
  const second = items.pop()!;
  const data = join(await tempFolder(t), 'data');
  const summary = async () => {
    const { code, stdout, stderr } = await tilewright(
      ...['ingest', '--from-stac', api, '--allow-host', server.host, '--data', data, '--bands', 'red'],
      ...REGION,
    );
    assert.equal(code, 0, stderr);
    return stdout.trim().split('\n').at(-1)!;
  };
  assert.match(await summary(), /^6 tiles of 1 scene in \S+data, [\d.]+ s$/);
  assert.match(await summary(), /^6 tiles of 1 scene in \S+data, unchanged, /);
  items.push(second);
  assert.match(await summary(), /^12 tiles of 2 scenes in \S+data, 1 scene unchanged, /);
});

test('Ctrl-C says how to continue, and leaves no files', async (t) => {
  const { api, server } = await remoteCatalog(t);
  const data = join(await tempFolder(t), 'data');
  const reached = new Promise<void>((resolve) => {
    server.fault = ({ url = '' }) => {
      if (!url.endsWith('nir.tif')) return false;
      resolve();
      return true;
    };
  });
  const child = start([
    ...['ingest', '--from-stac', api, '--allow-host', server.host, '--data', data, ...REGION],
  ]);
  const end = finished(child);
  await reached;
  child.kill('SIGINT');
  const { signal, stderr } = await end;
  // A shell shows the signal as exit code 130.
  assert.equal(signal, 'SIGINT');
  assert.match(stderr, /run the command again to complete it/);
  assert.deepEqual(await readdir(join(data, 'scratch')), []);
});

test('a dry run prints what would be read', async (t) => {
  const { api, server } = await remoteCatalog(t);
  const data = join(await tempFolder(t), 'data');
  const { stdout, code, stderr } = await tilewright(
    ...['ingest', '--from-stac', api, '--allow-host', server.host, '--data', data],
    ...['--bbox', '15.06,47.75,15.12,47.8', '--dry-run'],
  );
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^sentinel-2-l2a {2}a {2}\d+ tiles at most, \d+ requests, \d+\.\d MB\n/);
  assert.match(
    stdout,
    /\nwould make at most \d+ tiles of 1 scene in \S+data with \d+ requests and \d+\.\d MB\n$/,
  );
});

test('a dry run that finds a stored scene says what would be made', async (t) => {
  const { api, server, items } = await remoteCatalog(t, { ids: ['a', 'b'] });
  const second = items.pop()!;
  const data = join(await tempFolder(t), 'data');
  const run = async (...more: string[]) => {
    const { code, stdout, stderr } = await tilewright(
      ...['ingest', '--from-stac', api, '--allow-host', server.host, '--data', data, '--bands', 'red'],
      ...[...REGION, ...more],
    );
    assert.equal(code, 0, stderr);
    return stdout.trim().split('\n');
  };
  await run();
  assert.match(
    (await run('--dry-run')).at(-1)!,
    /^would make at most 0 tiles of 0 scenes in \S+data; 1 scene already ingested, unchanged$/,
  );
  items.push(second);
  const lines = await run('--dry-run');
  assert.match(
    lines.at(-1)!,
    /^would make at most 6 tiles of 1 scene in \S+data with \d+ requests? and \d+\.\d MB; 1 scene already ingested, unchanged$/,
  );
  assert.equal(lines.filter((line) => line.includes(' in ')).length, 1);
});

test('flags that do not fit together are refused', async (t) => {
  const { api, server } = await remoteCatalog(t, { ids: [] });
  const data = join(await tempFolder(t), 'data');
  const stac = ['ingest', '--from-stac', api, '--data', data];
  const cases: [string[], RegExp][] = [
    [['ingest', '--data', data], /nothing to ingest; name files, folders .*--from-stac/],
    [[...stac, 'scene.tif'], /scene\.tif and --from-stac cannot be ingested by one command/],
    [[...stac, '--bands', 'red=1'], /--bands is a list of names/],
    [[...stac, '--watch'], /cannot be used with/],
    [['ingest', 'x.tif', '--max-cloud', '20', '--data', data], /--max-cloud needs --from-stac/],
    [['ingest', 'x.tif', '--bands', 'red,nir', '--data', data], /needs numbers/],
    [[...stac, '--max-cloud', '120'], /percentage/],
    [[...stac, '--yes', '--limit', '5'], /cannot be used with/],
    [['ingest', 'x.tif', '--yes', '--data', data], /--yes needs --from-stac/],
    [[...stac, '--bbox', '1,2,3'], /has 3 numbers/],
  ];
  for (const [words, expected] of cases) {
    const { code, stderr } = await tilewright(...words);
    assert.equal(code, 2, stderr);
    assert.match(stderr, expected);
  }
  const refused = await tilewright(...stac);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /not public|not encrypted/);
  assert.deepEqual(server.requests, []);
  const unused = await tilewright(...stac, '--allow-host', server.host, '--server', 'http://127.0.0.1:9');
  assert.match(
    unused.stderr,
    /^warning: --allow-host has no effect: the server at http:\/\/127.0.0.1:9 .* flags of the server count/,
  );
});

test('without a terminal, the line of a scene is printed when it is stored, and once', async (t) => {
  const { api, server } = await remoteCatalog(t, { ids: ['a', 'b'] });
  const data = join(await tempFolder(t), 'data');
  let stdout = '';
  let before: string | undefined;
  server.fault = async ({ url = '' }) => {
    if (!url.startsWith('/b/')) return false;
    for (let waits = 0; !stdout.includes('\n') && waits < 600; waits++) await sleep(50);
    before ??= stdout;
    return false;
  };
  const child = start([
    ...['ingest', '--from-stac', api, '--allow-host', server.host, '--data', data, '--bands', 'red'],
    ...REGION,
  ]);
  child.stdout!.on('data', (bytes) => {
    stdout += bytes;
  });
  const end = await finished(child);
  assert.equal(end.code, 0, end.stderr);
  assert.equal(before, 'sentinel-2-l2a  a  6 tiles\n');
  assert.match(
    end.stdout,
    /^sentinel-2-l2a {2}a {2}6 tiles\nsentinel-2-l2a {2}b {2}6 tiles\n12 tiles of 2 scenes in .*\n$/,
  );
});
