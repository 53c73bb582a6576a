/** The command as users run it: real processes, exit codes, stdout and stderr. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { finished, MAIN, start, tilewright } from '../support/command.js';
import { SCENE_FLAGS, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

test('a build leaves the command executable, as npx runs it', () => {
  accessSync(MAIN, constants.X_OK);
});

test('--help lists the commands, and every command has its own', async () => {
  const { code, stdout } = await tilewright('--help');
  assert.equal(code, 0);
  for (const command of [
    'demo',
    'serve',
    'ingest',
    'search',
    'train',
    'texture',
    'models',
    'info',
    'delete',
    'verify',
  ]) {
    assert.match(stdout, new RegExp(`^  ${command}\\b`, 'm'));
    const own = await tilewright(command, '--help');
    assert.equal(own.code, 0);
    assert.match(own.stdout, /Usage: tilewright/);
  }
});

test('the flags in docs/how-to/ingest.md are flags of ingest', async () => {
  const page = await readFile(new URL('../../../docs/how-to/ingest.md', import.meta.url), 'utf8');
  const [, table = ''] = /^\| flag of `ingest` .*\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const flags = [...table.matchAll(/^\|([^|]+)\|/gm)].flatMap(
    ([, cell]) => cell!.match(/--[a-z-]+[a-z]/g) ?? [],
  );
  assert.ok(flags.length > 5, table);
  const { stdout } = await tilewright('ingest', '--help');
  assert.deepEqual(
    flags.filter((name) => !new RegExp(`^ +${name}\\b`, 'm').test(stdout)),
    [],
  );
});

test('the help of a command has its flags in groups, and only useful ones', async () => {
  const helpOf = async (command: string) => (await tilewright(command, '--help')).stdout;
  const [search, train, models] = await Promise.all(['search', 'train', 'models'].map(helpOf));
  assert.match(
    search!,
    /^Options:[\s\S]*--limit[\s\S]*^Which tiles:[\s\S]*--bbox[\s\S]*^Where:[\s\S]*--data[\s\S]*^Output:[\s\S]*--format/m,
  );
  assert.match(train!, /^Resources:[\s\S]*--cores/m);
  for (const help of [search, models]) assert.doesNotMatch(help!, /--cores|--memory|--reserve/);
});

test('wrong usage is exit code 2 and says what is wrong', async () => {
  for (const args of [
    ['nonsense'],
    ['ingest'],
    ['search', '--limit', 'many'],
    ['train', 'weather'],
    ['train', 'ndvi', 'weather'],
    ['train', 'ndvi', 'ndvi'],
    ['train', 'ndvi', 'ndmi', '--mode', 'distributed'],
    ['search', '--no-such'],
    ['delete', 'job', 'x'],
    ['delete', 'scene', 'without-collection'],
    ['search', '--limit', '0x2'],
    ['search', '--server', 'localhost:8080'],
    ['search', '--server', 'ftp://127.0.0.1'],
    ['serve', '--port', '99999'],
    ['serve', '--token', 'change-me-token'],
    ['serve', '--secret', 'change-me-secret'],
    ['serve', '--trust-proxy', 'foo'],
    ['serve', '--public-url', 'ftp://x'],
    ['serve', '--public-url', 'https://example.org'],
    ['ingest', 'any.tif', '--datetime', 'foo'],
    ['ingest', 'any.tif', '--position', 'EPSG:32633'],
    ['analyse', 'smooth', '--no-such'],
    ['analyse', 'classify', '--collection', 'without-labels'],
  ]) {
    const { code, stderr, stdout } = await tilewright(...args);
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, /^error: /m);
    assert.equal(stdout, '');
  }
});

test('a command that reads names the missing data folder, and does not create it', async (t) => {
  const folder = await tempFolder(t);
  const { code, stderr } = await tilewright('search', '--data', join(folder, 'nothing'));
  assert.equal(code, 1);
  assert.match(stderr, /there is no data folder at .*nothing.*\[TW_CLI_NO_DATA\]/);
});

test('an ingest of a path that does not exist leaves no data folder', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const ingest = (...args: string[]) =>
    tilewright('ingest', join(folder, 'nope.tif'), ...args, '--data', data);
  for (const [args, error] of [
    [[], /nope\.tif: this file or folder does not exist.*\[TW_INGEST_NOT_RECOGNISED\]/],
    [['--watch'], /nope\.tif is not a readable folder.*\[TW_CLI_NOT_FOLDER\]/],
  ] as const) {
    const { code, stderr } = await ingest(...args);
    assert.equal(code, 1);
    assert.match(stderr, error);
    assert.equal(existsSync(data), false);
  }
});

test('a search in a missing collection lists the existing ones', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const scene = await writeTestScene(join(folder, 'a.tif'));
  const search = () => tilewright('search', '--collection', 'zzz', '--data', data, '--format', 'json');
  await tilewright('ingest', scene, '--datetime', '2024-06-01', ...SCENE_FLAGS, '--data', data);
  const { code, stderr, stdout } = await search();
  assert.deepEqual([code, stderr], [0, 'collection zzz does not exist; existing collections: test\n']);
  assert.deepEqual(JSON.parse(stdout).features, []);
});

test('documents of a command without a server have no dead links', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const scene = await writeTestScene(join(folder, 'a.tif'));
  await tilewright('ingest', scene, '--datetime', '2024-06-01', ...SCENE_FLAGS, '--data', data);
  const printed = async (...args: string[]) =>
    (await tilewright(...args, '--data', data, '--format', 'json')).stdout;
  const search = await printed('search', '--limit', '1');
  const [item] = JSON.parse(search).features;
  assert.deepEqual(item.links, [], 'STAC needs the member');
  assert.doesNotMatch(search, /localhost/);
  for (const args of [['info'], ['info', 'test'], ['info', item.id], ['jobs']])
    assert.doesNotMatch(await printed(...args), /localhost/);
});

test('flags come from the command line, else the environment, else the config file', async (t) => {
  const folder = await tempFolder(t);
  const config = join(folder, 'config.json');
  await writeFile(config, JSON.stringify({ data: join(folder, 'from-config'), 'max-cloud': 20 }));
  const seen = async (args: string[]) => (await tilewright('search', '--config', config, ...args)).stderr;
  assert.match(await seen([]), /from-config/);
  assert.match(await seen(['--data', join(folder, 'from-flag')]), /from-flag/);
  // One config file serves all commands: flags of other commands and subcommands are ignored.
  await writeFile(
    config,
    JSON.stringify({ data: join(folder, 'shared'), port: 8080, memory: '1GB', endmembers: 4 }),
  );
  assert.match(await seen([]), /shared/);
  await writeFile(config, JSON.stringify({ daat: 'x' }));
  const { code, stderr } = await tilewright('search', '--config', config);
  assert.equal(code, 2);
  assert.match(stderr, /"daat" is not the name of a flag/);
});

test('a boolean flag in the environment accepts only known values', async (t) => {
  const folder = await tempFolder(t);
  const config = join(folder, 'config.json');
  await writeFile(config, JSON.stringify({ curriculum: true }));
  const train = async (value: string, ...args: string[]) => {
    const data = ['--data', join(folder, 'none'), '--config', config];
    const env = { TILEWRIGHT_CURRICULUM: value };
    return finished(start(['train', 'ndvi', ...args, ...data], env));
  };
  for (const on of ['true', '1']) {
    const { code, stderr } = await train(on);
    assert.deepEqual(
      [code, /--representatives-first and --fine-tuning go with --transfer/.test(stderr)],
      [2, true],
    );
  }
  for (const off of ['false', '0', '']) assert.match((await train(off)).stderr, /TW_CLI_NO_DATA/);
  assert.match(
    (await train('false', '--curriculum')).stderr,
    /--representatives-first and --fine-tuning go with/,
  );
  await writeFile(config, JSON.stringify({ recurse: 'no' }));
  assert.match((await train('0')).stderr, /"recurse" is "no"\. It must be true or false/);
  const { code, stderr } = await train('maybe');
  assert.deepEqual(
    [code, stderr.split('\n')[0]],
    [2, 'error: TILEWRIGHT_CURRICULUM is "maybe". It must be true or false.'],
  );
});

test('a server is not opened beyond loopback without a token', async (t) => {
  const folder = await tempFolder(t);
  const { code, stderr } = await tilewright('serve', '--data', folder, '--host', '0.0.0.0', '--port', '0');
  assert.equal(code, 2);
  assert.match(stderr, /\[TW_API_OPEN_BIND\]/);
});

test('a secret that could be guessed is refused', async (t) => {
  const folder = await tempFolder(t);
  const cluster = [
    '--etcd',
    'http://127.0.0.1:1',
    '--store',
    `file://${folder}/store`,
    '--secret',
    'fifteen letters',
  ];
  const { code, stderr } = await tilewright('serve', '--data', folder, ...cluster);
  assert.deepEqual([code, /--secret is shorter than 16 characters/.test(stderr)], [2, true], stderr);
});

test('a limit of file descriptors that is too low is named, and the lowest that is accepted suffices', {
  skip: !existsSync('/proc/self/limits') && 'this system does not report the limit',
}, async (t) => {
  const folder = await tempFolder(t);
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  const ingest = (limit: number) => {
    const args = ['ingest', scene, '--datetime', '2024-06-01T10:00:00Z', ...SCENE_FLAGS];
    const command = [process.execPath, MAIN, ...args, '--data', join(folder, 'data')];
    const stdio = ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'];
    return finished(spawn('sh', ['-c', `ulimit -n ${limit}; exec "$@"`, 'sh', ...command], { stdio }));
  };
  const refused = await ingest(64);
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /^error: this process may open 64 files, but needs at least 256 .*TW_CLI_DESCRIPTORS\]\n$/,
  );
  const accepted = await ingest(256);
  assert.equal(accepted.code, 0, accepted.stderr);
});
