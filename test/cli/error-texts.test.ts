/** Errors of the system, of the network and of JSON in words: messages name the input and the reason, and no codes or calls of Node. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { cp, mkdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { messageOf } from '../../src/errors.js';
import { Storage } from '../../src/storage/index.js';
import { parseJson } from '../../src/utils/json-text.js';
import { atEnd } from '../support/at-end.js';
import { finished, start, tilewright } from '../support/command.js';
import { tempFolder } from '../support/temp.js';

/** Words of Node's own messages. */
const QUOTES =
  /\bE[A-Z]{4,}\b|ERR_|syscall|not valid JSON|Unexpected|fetch failed|Cannot read|undefined| {4}at /;

test('JSON that is wrong is reported with its place', () => {
  const faults: [text: string, fault: string][] = [
    ['', 'a value at line 1, column 1, found the end'],
    ['{"data": }', 'a value at line 1, column 10, found "}"'],
    ['{"a": 1,\n "b" 2}', 'a colon at line 2, column 6, found "2}"'],
    ['{"a": 1', 'a comma or } at line 1, column 8, found the end'],
    ['[1 2]', 'a comma or ] at line 1, column 4, found "2]"'],
    ['[1,]', 'a value at line 1, column 4, found "]"'],
    ['[1}', 'a comma or ] at line 1, column 3, found "}"'],
    ['{a: 1}', 'a name in double quotes, or } at line 1, column 2, found "a: 1}"'],
    ['{"a": 1,}', 'a name in double quotes at line 1, column 9, found "}"'],
    ['[]]', 'the end at line 1, column 3, found "]"'],
    ['[01]', 'a value or ] at line 1, column 2, found "01]"'],
    ['"\\x"', 'a value at line 1, column 1, found "\\"\\\\x\\""'],
    ['NaN', 'a value at line 1, column 1, found "NaN"'],
  ];
  for (const [text, fault] of faults)
    assert.throws(() => parseJson(text), {
      name: 'SyntaxError',
      message: `it is not JSON: expected ${fault}`,
    });
  // Strings that do not end, and escapes that are none: the time grows with the length only.
  const long = 'a'.repeat(1_000_000);
  assert.throws(() => parseJson(`{"${long}`), /found "/);
  assert.throws(() => parseJson(`["${long}\\x"]`), /expected a value or \] at line 1, column 2/);
  assert.throws(() => parseJson(`["${'\\n'.repeat(500_000)}`), /expected a value or \]/);
  assert.deepEqual(parseJson(' {"a": [1, {"b": null}]} '), { a: [1, { b: null }] });
});

test('errors of the system and of the network are put into words', async (t) => {
  const folder = await tempFolder(t);
  const missing = join(folder, 'missing');
  const caught = async (work: () => unknown) => {
    try {
      await work();
    } catch (error) {
      return messageOf(error);
    }
    return assert.fail('no error');
  };
  assert.equal(await caught(() => readFileSync(missing)), `${missing} does not exist`);
  assert.equal(await caught(() => readFileSync(folder)), 'it is a folder, not a file');
  const closed = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => closed.once('listening', resolve));
  const { port } = closed.address() as AddressInfo;
  const used = createServer();
  const inUse = new Promise((_, reject) => used.once('error', reject).listen(port, '127.0.0.1'));
  assert.equal(await caught(() => inUse), `another process uses 127.0.0.1:${port}`);
  await new Promise((resolve) => closed.close(resolve));
  const url = `http://127.0.0.1:${port}`;
  assert.equal(await caught(() => fetch(url)), `nothing listens at 127.0.0.1:${port}`);
  assert.equal(await caught(() => fetch('http://127.0.0.1:22')), 'HTTP does not use this port');
  const speaksOther = createSocketServer((socket) => socket.end('hello\r\n')).listen(0, '127.0.0.1');
  atEnd(t, () => speaksOther.close());
  await new Promise((resolve) => speaksOther.once('listening', resolve));
  const other = `127.0.0.1:${(speaksOther.address() as AddressInfo).port}`;
  assert.equal(await caught(() => fetch(`http://${other}`)), 'the other side does not speak HTTP');
  assert.match(await caught(() => fetch(`https://${other}`)), /does not speak TLS/);
  const timeout = AbortSignal.timeout(1);
  await new Promise((resolve) => timeout.addEventListener('abort', resolve));
  assert.equal(messageOf(timeout.reason), 'the other side did not answer in time');
});

test('commands report wrong files and addresses in words, with a code or as wrong usage', async (t) => {
  const folder = await tempFolder(t);
  const file = async (name: string, text: string) => {
    const path = join(folder, name);
    await writeFile(path, text);
    return path;
  };
  const broken = await file('broken.json', '{"data": }');
  const list = await file('list.json', '[1]');
  const nothing = await file('null.json', 'null');
  const unknown = await file('unknown.json', '{"nope": 1}');
  const missing = join(folder, 'missing');
  await mkdir(join(folder, 'folder'));
  const isFolder = join(folder, 'folder');
  const cases: [args: string[], code: number, message: RegExp][] = [
    [
      ['search', '--config', broken],
      2,
      /broken\.json cannot be used: it is not JSON: .*column 10.*\[TW_CLI_CONFIG\]/,
    ],
    [['search', '--config', list], 2, /it is not a JSON object.*\[TW_CLI_CONFIG\]/],
    [['search', '--config', nothing], 2, /it is not a JSON object.*\[TW_CLI_CONFIG\]/],
    [['search', '--config', unknown], 2, /"nope" is not the name of a flag \[TW_CLI_CONFIG\]/],
    [['search', '--config', isFolder], 2, /it is a folder, not a file \[TW_CLI_CONFIG\]/],
    [['search', '--config', missing], 2, /missing does not exist \[TW_CLI_CONFIG\]/],
    [['search', '--intersects', broken], 2, /It must be GeoJSON.*it is not JSON: expected a value/],
    [['search', '--intersects', missing], 2, /missing does not exist/],
    [['series', isFolder, '--expression', 'ndvi'], 2, /it is a folder, not a file.*\[TW_CLI_PLACE\]/],
    [
      ['search', '--server', 'http://127.0.0.1:22'],
      1,
      /HTTP does not use this port.*\[TW_CLIENT_UNREACHABLE\]/,
    ],
    [['ingest', missing], 1, /missing: this file or folder does not exist.*\[TW_INGEST_NOT_RECOGNISED\]/],
  ];
  await Promise.all(
    cases.map(async ([args, code, message]) => {
      const ended = await tilewright(...args);
      assert.match(ended.stderr, message);
      assert.doesNotMatch(ended.stderr, QUOTES);
      assert.equal(ended.code, code, args.join(' '));
    }),
  );
});

test('any JSON answer of another server is reported as such', async (t) => {
  let body = '';
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(t, () => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const check = async (...args: string[]) => {
    const { code, stderr, stdout } = await tilewright(...args, '--server', url);
    assert.match(stderr, /is it a tilewright server\? \[TW_CLIENT_BAD_ANSWER\]/);
    assert.doesNotMatch(stderr + stdout, QUOTES);
    assert.equal(code, 1);
  };
  body = '{}';
  await Promise.all([check('search'), check('info'), check('jobs'), check('verify')]);
  body = '{"features":null}';
  await check('search');
});

test('a damaged data folder is reported by its file, with what to do', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  await (await Storage.open(data)).close();
  const search = async (from: string) => {
    const ended = await tilewright('search', '--data', from);
    assert.doesNotMatch(ended.stderr, QUOTES);
    assert.doesNotMatch(ended.stderr, /\(node:|--trace-warnings/);
    return ended;
  };
  const copy = async (name: string, damage: (at: string) => Promise<unknown>) => {
    const at = join(folder, name);
    await cp(data, at, { recursive: true });
    await damage(at);
    return search(at);
  };
  const truncated = await copy('truncated', (at) => truncate(join(at, 'node.json'), 20));
  assert.match(
    truncated.stderr,
    /node\.json is damaged: it is not JSON: .*; restore it.*\[TW_STORAGE_FORMAT\]/,
  );
  const isFolder = await copy('folder', async (at) => {
    await rm(join(at, 'node.json'));
    await mkdir(join(at, 'node.json'));
  });
  assert.match(isFolder.stderr, /node\.json failed: it is a folder, not a file \[TW_STORAGE_IO\]/);
  const catalogue = await copy('catalogue', (at) => rm(join(at, 'catalogue', 'CURRENT')));
  assert.match(catalogue.stderr, /the catalogue .* is damaged: .*from a backup.*\[TW_STORAGE_CORRUPT\]/);
  assert.doesNotMatch(catalogue.stderr, /verify/);
  const loop = await copy('loop', async (at) => {
    await rm(join(at, 'node.json'));
    await symlink('node.json', join(at, 'node.json'));
  });
  assert.match(loop.stderr, /node\.json has a loop of symbolic links \[TW_STORAGE_IO\]/);
  const columns = await copy('columns', async (at) => {
    await mkdir(join(at, 'columns'), { recursive: true });
    await writeFile(join(at, 'columns', '000000000001.snap'), 'x');
  });
  assert.match(columns.stderr, /^warning: the index is read from the catalogue, because 000000000001\.snap /);
  assert.equal(columns.code, 0);
});

test('--allow-host refuses a text that names no host, wherever it comes from', async (t) => {
  const folder = await tempFolder(t);
  const data = ['--data', join(folder, 'data')];
  const form = /It must be host, host:port or \*\.domain\.$/m;
  const named = /It must be host, host:port or \*\.domain, here 127\.0\.0\.1:9410\.$/m;
  const cases: [text: string, message: RegExp][] = [
    ['http://127.0.0.1:9410', named],
    ['127.0.0.1:9410/stac', named],
    ['a.example.org,HTTP://127.0.0.1:9410/stac?x=1', named],
    ...[
      'not a host',
      '',
      '*',
      '*.',
      'a,',
      '*.example.org:8080',
      'a*.example.org',
      'host:',
      'host:70000',
      '::1',
    ].map((text): [string, RegExp] => [text, form]),
  ];
  await Promise.all(
    cases.map(async ([text, message]) => {
      const { code, stderr } = await tilewright('ingest', 'x.tif', ...data, '--allow-host', text);
      assert.match(stderr, message, text);
      assert.equal(code, 2, text);
    }),
  );
  const config = join(folder, 'config.json');
  await writeFile(config, JSON.stringify({ 'allow-host': ['localhost', 'http://127.0.0.1:9410'] }));
  const fromFile = await tilewright('serve', ...data, '--config', config);
  assert.match(fromFile.stderr, /"allow-host" is .*, here 127\.0\.0\.1:9410\. \[TW_CLI_CONFIG\]/);
  assert.equal(fromFile.code, 2);
  for (const command of ['serve', 'ingest', 'subscribe', 'subscriptions', 'jobs']) {
    const child = start([command, ...data], { TILEWRIGHT_ALLOW_HOST: 'not a host' });
    const { code, stderr } = await finished(child);
    assert.match(stderr, form, command);
    assert.equal(code, 2, command);
  }
  const sound = ['a.example.org', 'localhost:8080', '*.example.org', '[::1]:80', '192.0.2.1'];
  const missing = await tilewright('ingest', join(folder, 'none.tif'), ...data, '--allow-host', sound.join());
  assert.match(missing.stderr, /TW_INGEST_NOT_RECOGNISED/);
});
