/**
 * A server of 512 MB under attack by clients without a token: it stays up and within its memory, and answers others in between.
 * TILEWRIGHT_HOSTILE_MINUTES=60 repeats the attacks for an hour.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ModelRecord, newVersion, Storage, type TileRecord } from '../../src/storage/index.js';
import { freePort, storeOf, until } from '../dht/server-processes.js';
import { atEnd } from '../support/at-end.js';
import { start } from '../support/command.js';
import { ingest, testNode } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

const MEMORY_BYTES = 512e6;
const TILES = 12_000;
const SCENES = 50_000;
const MODELS = 20_000;
const MINUTES = Number(process.env['TILEWRIGHT_HOSTILE_MINUTES'] ?? 0);

/** A data folder with many records, most of them without files. */
async function fill(t: TestContext, folder: string): Promise<string> {
  const data = join(folder, 'data');
  const node = await testNode(t, data, { cores: 1 });
  const href = await writeTestScene(join(folder, 'scene.tif'));
  const scene = {
    collection: 'c',
    datetime: '2024-06-01T10:00:00Z',
    bands: { red: 3, nir: 4 },
    precision: 6,
  };
  await ingest(node, { href, ...scene });
  await node.close();
  const storage = await Storage.open(data, { reserve: 0 });
  const { catalogue } = storage;
  let tile: TileRecord | undefined;
  for await (const { record } of catalogue.tiles.scan()) tile ??= record;
  const sceneRecord = (await catalogue.scenes.scan()[Symbol.asyncIterator]().next()).value!.record!;
  const put = async (count: number, make: (i: number) => ReturnType<typeof catalogue.tiles.set>) => {
    for (let i = 0; i < count; i += 2000)
      await catalogue.write(Array.from({ length: Math.min(2000, count - i) }, (_, k) => make(i + k)));
  };
  await put(TILES, (i) => {
    const id = `c_S${i}_g${tile!.geocode}`;
    return catalogue.tiles.set(id, { ...tile!, id, scene: `S${i}`, start: i * 1000, end: i * 1000 });
  });
  await put(SCENES, (i) => catalogue.scenes.set(`c/X${i}`, { ...sceneRecord, id: `X${i}` }));
  await put(MODELS, (i) => {
    const id = `ndvi_c_g${i}`;
    const version = { version: newVersion(), createdAt: 1, files: [], card: { metrics: {} } };
    const model = { id, model: 'ndvi', collection: 'c', grid: 'geohash', geocode: tile!.geocode, ...version };
    return catalogue.models.set(id, { ...model, former: [] } as unknown as ModelRecord);
  });
  await storage.close();
  // The index is rebuilt from the records.
  await rm(join(data, 'columns'), { recursive: true, force: true });
  return data;
}

interface Target {
  port: number;
  item: string;
}

/** A connection from one of the addresses of this machine, whose errors are expected. */
function from(address: number, { port }: Target, head = ''): Socket {
  const localAddress = process.platform === 'linux' ? `127.0.0.${address}` : '127.0.0.1';
  const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => undefined);
  if (head) socket.write(head);
  return socket;
}

const head = (line: string, more = '') => `${line} HTTP/1.1\r\nhost: localhost\r\n${more}\r\n`;

const OF_NODES = 'messages of nodes without a signature';
const ATTACKS: Record<string, (target: Target) => Promise<Socket[]>> = {
  async [OF_NODES](target) {
    const type = 'content-type: application/vnd.tilewright.node+json\r\ncontent-length: 260000000\r\n';
    const chunk = Buffer.alloc(1 << 20);
    return Array.from({ length: 24 }, (_, i) => {
      const path = ['ask', 'work/words', 'work', 'ingest/part'][i % 4];
      const socket = from(2 + (i % 3), target, head(`POST /cluster/internal/${path}`, type)).resume();
      const send = () => {
        while (!socket.destroyed && socket.write(chunk));
      };
      return socket.on('drain', send).on('connect', send);
    });
  },
  async 'JSON that does not end'(target) {
    const type = 'content-type: application/json\r\ncontent-length: 1000000\r\n';
    return Array.from({ length: 800 }, (_, i) => {
      const socket = from(2 + (i % 4), target, head('POST /search', type)).resume();
      socket.write('x'.repeat(900_000));
      return socket;
    });
  },
  async 'long answers that nobody reads'(target) {
    return Array.from({ length: 60 }, (_, i) =>
      from(2 + (i % 4), target, head('GET /search?limit=10000')).pause(),
    );
  },
  async 'requests that are cancelled'(target) {
    const paths = [
      `/preview/${target.item}.png`,
      '/xyz/c/14/8877/5683.png',
      '/search?limit=1000',
      '/models?limit=1000',
    ];
    for (let i = 0; i < 400; i++) {
      const socket = from(2, target, head(`GET ${paths[i % paths.length]}`));
      setTimeout(() => socket.destroy(), 20);
      if (i % 20 === 0) await sleep(20);
    }
    return [];
  },
  async 'connections that say nothing'(target) {
    return Array.from({ length: 3000 }, (_, i) => from(2 + (i % 8), target).resume());
  },
  async 'many requests for counts and lists'(target) {
    const lines = [
      '/health',
      '/metrics',
      '/models',
      '/collections/c/scenes',
      '/collections',
      '/jobs',
      '/ready',
    ];
    return Array.from({ length: 70 }, (_, i) => {
      const pipelined = head(`GET ${lines[i % lines.length]}`).repeat(20);
      return from(2 + (i % 3), target, pipelined).resume();
    });
  },
};

/** A server that anybody may read, started as an operator starts it. */
async function serve(t: TestContext, data: string, flags: string[] = []) {
  const port = await freePort();
  const place = ['--data', data, '--port', `${port}`, '--reserve', '0', '--cores', '1', '--memory', '64MB'];
  const child = start(['serve', ...place, '--token', 'w', ...flags], {
    NODE_OPTIONS: '--max-old-space-size=256',
  });
  child.stdout?.resume();
  let log = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-10_000);
  });
  atEnd(t, async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'close');
  });
  const url = `http://127.0.0.1:${port}`;
  await until('it runs', async () => (await fetch(`${url}/health`)).ok);
  /** Throws if the server has ended, does not answer, or has taken too much memory. */
  const check = async (name: string) => {
    const answer = await fetch(`${url}/search?limit=10`, { signal: AbortSignal.timeout(60_000) });
    assert.equal(answer.status, 200, `${name}: ${await answer.clone().text()}`);
    await answer.arrayBuffer();
    assert.deepEqual([child.exitCode, child.signalCode], [null, null], `${name}: ${log}`);
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '');
    const peak = 1024 * Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0);
    t.diagnostic(`${name}: at most ${Math.round(peak / 1e6)} MB`);
    assert.ok(peak < MEMORY_BYTES, `${name}: ${peak} bytes`);
  };
  const stop = async () => {
    child.kill('SIGTERM');
    const [code] = await once(child, 'close');
    assert.equal(code, 0, log);
  };
  return { port, url, check, stop };
}

test('a server stays up and within its memory under attack, and answers others in between', async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const server = await serve(t, await fill(t, folder));
  const node = await serve(t, join(folder, 'node'), ['--store', storeOf(folder)]);
  const page = (await (await fetch(`${server.url}/search?limit=1`)).json()) as { features: { id: string }[] };
  const item = page.features[0]!.id;
  const began = performance.now();
  do
    for (const [name, attack] of Object.entries(ATTACKS)) {
      const target = attack === ATTACKS[OF_NODES] ? node : server;
      const sockets = await attack({ port: target.port, item });
      await sleep(3000);
      try {
        await target.check(name);
      } finally {
        for (const socket of sockets) socket.destroy();
      }
    }
  while (performance.now() - began < 60_000 * MINUTES);
  await server.stop();
  await node.stop();
});
