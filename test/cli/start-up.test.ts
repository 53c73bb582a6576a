/** The modules that a short command loads, which take most of its time; and the compile cache of Node. */
import assert from 'node:assert/strict';
import { chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openNode } from '../../src/node.js';
import { finished, start } from '../support/command.js';
import { tempFolder } from '../support/temp.js';

const LOG_MODULES = new URL('../support/log-modules.js', import.meta.url).href;

/** URLs of the modules that a command loads, without those of Node. */
async function modulesOf(t: TestContext, ...args: string[]): Promise<string[]> {
  const log = join(await tempFolder(t), 'modules');
  const ended = await finished(start(args, { MODULE_LOG: log, NODE_OPTIONS: `--import=${LOG_MODULES}` }));
  assert.equal(ended.code, 0, ended.stderr);
  const urls = readFileSync(log, 'utf8').trim().split('\n');
  return [...new Set(urls)].filter((url) => url.startsWith('file:'));
}

const packageOf = (url: string) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
const bundle = new URL('../../command/', import.meta.url).href;

/** Packages of these modules. The source map of a file of the bundle names the modules inside. */
function packagesOf(urls: string[]): (string | undefined)[] {
  const sources = urls.flatMap((url): string[] =>
    url.startsWith(bundle) ? JSON.parse(readFileSync(new URL(`${url}.map`), 'utf8')).sources : [url],
  );
  return [...new Set(sources.map(packageOf))];
}

/** Packages that only some commands use. */
const ON_DEMAND = [
  '@aws-sdk/client-s3',
  '@fastify/swagger',
  '@tensorflow/tfjs-core',
  '@tensorflow/tfjs-layers',
  '@tensorflow/tfjs-backend-wasm',
  'h5wasm',
  'lerc',
  'proj4',
  'sharp',
  'tar-stream',
  'yauzl',
  'zstddec',
];
const OF_A_SERVER = ['fastify', 'prom-client'];

/** The bundle has about 30 files for `search`, the kernels of pixels are loaded once for each data type, and `level` is not bundled. */
const MAX_MODULES = 110;

async function assertLoads(t: TestContext, args: string[], forbidden: string[]): Promise<void> {
  const urls = await modulesOf(t, ...args);
  const loaded = packagesOf(urls);
  assert.ok(loaded.includes('commander'));
  assert.deepEqual(
    forbidden.filter((name) => loaded.includes(name)),
    [],
    args.join(' '),
  );
  assert.ok(urls.length <= MAX_MODULES, `${args.join(' ')} loads ${urls.length} modules`);
}

test('help loads neither the server nor what only some commands use', async (t) => {
  for (const args of [['--help'], ['search', '--help'], ['serve', '--help']])
    await assertLoads(t, args, [...ON_DEMAND, ...OF_A_SERVER]);
});

test('short commands load nothing of ingest, training and object stores', async (t) => {
  const data = join(await tempFolder(t), 'data');
  await (await openNode({ data, memory: 128e6, cores: 1 })).close();
  for (const command of ['search', 'info', 'models', 'jobs'])
    await assertLoads(t, [command, '--data', data], ON_DEMAND);
});

const hasCompileCache = 'enableCompileCache' in module;

test('compiled code is cached in the folder of the user', async (t) => {
  const folder = await tempFolder(t);
  const cache = join(folder, 'tilewright');
  const help = (env: NodeJS.ProcessEnv) => finished(start(['--help'], { NODE_COMPILE_CACHE: '', ...env }));
  const off = await help({ XDG_CACHE_HOME: folder, NODE_DISABLE_COMPILE_CACHE: '1' });
  assert.deepEqual([off.code, existsSync(cache)], [0, false]);
  const on = await help({ XDG_CACHE_HOME: folder });
  assert.deepEqual([on.code, existsSync(cache)], [0, hasCompileCache]);
  assert.equal(on.stdout, off.stdout);
});

test('a command runs without a cache if the folder cannot be used', async (t) => {
  const folder = await tempFolder(t);
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const occupied = join(folder, 'occupied');
  mkdirSync(occupied);
  writeFileSync(join(occupied, 'tilewright'), '');
  for (const XDG_CACHE_HOME of [file, occupied, join(folder, 'missing')]) {
    const { code, stderr } = await finished(start(['--help'], { XDG_CACHE_HOME }));
    assert.deepEqual([code, stderr], [0, ''], XDG_CACHE_HOME);
  }
  assert.ok(!existsSync(join(folder, 'missing')));
});

test('the folder of another user is left alone', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can give a folder to another user');
  const home = join(await tempFolder(t), 'home');
  mkdirSync(home);
  chownSync(home, 12345, 12345);
  const { code } = await finished(start(['--help'], { HOME: home, XDG_CACHE_HOME: '' }));
  assert.deepEqual([code, existsSync(join(home, '.cache'))], [0, false]);
});
