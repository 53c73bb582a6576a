/** Output about a cluster: lists of its nodes, and messages if nodes or etcd do not answer. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ListedNode } from '../../src/client/index.js';
import { ended, freePort, get, type Server, serve, until } from '../dht/server-processes.js';
import { start, tilewright } from '../support/command.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

/** 300 by 260 km: cells of precision 4 are in slots of their own. */
const SCENE = { width: 300, height: 260, pixel: 1000 };

const nodesOf = async (server: Server) =>
  (await get<{ nodes: ListedNode[] }>(server, '/cluster/nodes')).nodes;

/** The stderr of a server from now on. */
function heard({ process }: Server): () => string {
  let said = '';
  process.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  return () => said;
}

test('a cluster as its operator sees it', { skip: noEtcd, timeout: 300_000 }, async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  const ports = [await freePort(), await freePort()];
  const more = ['--grace', '600'];
  const a = serve(t, folder, ports[0]!, etcd, ['--owners', '1', ...more]);
  await until('the first is ready', async () => (await fetch(`${a.url}/ready`)).ok);
  const b = serve(t, folder, ports[1]!, etcd, ['--owners', '3', ...more]);
  const [saidA, saidB] = [heard(a), heard(b)];
  const own = (nodes: ListedNode[]) =>
    nodes.filter(({ slots, states }) => slots > 0 && states!.available === slots);
  for (const server of [a, b])
    await until('slots are shared out', async () => own(await nodesOf(server)).length === 2);
  const at = ['--server', a.url];
  const ran = async (...args: string[]) => {
    const { code, stdout, stderr } = await tilewright(...args, ...at);
    assert.equal(code, 0, stderr);
    return { stdout, stderr };
  };
  const scene = await writeTestScene(join(folder, 's.tif'), { ...SCENE, seed: 1 });
  const flags = ['--datetime', '2024-06-01T10:00:00Z', '--collection', 'c', '--precision', '4'];
  await ran('ingest', scene, ...flags);
  const whole = await ran('search', '--limit', '1000');
  assert.equal(whole.stderr, '');
  const tiles = whole.stdout.split('\n').flatMap((line) => /^c_\S+/.exec(line)?.[0] ?? []);
  assert.ok(tiles.length > 50, `${tiles.length} tiles`);

  await t.test('owners that differ from those of the cluster are a warning', () => {
    assert.match(saidB(), /--owners 3 has no effect: each slot of this cluster has 1 owner/);
    assert.doesNotMatch(saidA(), /has no effect/);
  });

  await t.test('a tile is located by its id, with addresses', async () => {
    const cell = tiles[0]!.slice(tiles[0]!.lastIndexOf('_g') + 2);
    const byId = await ran('node', 'locate', tiles[0]!);
    assert.deepEqual(byId, await ran('node', 'locate', cell));
    assert.deepEqual(byId, await ran('node', 'locate', `${tiles[0]}_filled-0123`));
    assert.match(byId.stdout, /is in slot \d+\n {2}[0-9a-f]{16} {2}http:\/\/\S+ {2}running {2}available\n$/);
  });

  await t.test('a node can be named by its address or the start of its id', async () => {
    const { id } = (await nodesOf(a)).find(({ url }) => url === b.url)!;
    const drained = await ran('node', 'drain', b.url);
    assert.match(drained.stdout, new RegExp(`^node ${id} gives its slots to the others`));
    assert.match(drained.stderr, /^warning: only one node takes slots now/);
    await until('it is drained', async () => /"drained: this node owns no slots and can/.test(saidB()));
    assert.match(
      (await ran('node', 'join', id.slice(0, 12))).stdout,
      new RegExp(`^node ${id} now takes slots again`),
    );
    await until('it has slots', async () => own(await nodesOf(a)).length === 2);
    const all = await tilewright('node', 'drain', '', ...at);
    assert.deepEqual([all.code, /several node ids begin with/.test(all.stderr)], [2, true]);
  });

  await t.test('incomplete answers have a warning', async () => {
    await ended(b.process, 'SIGKILL');
    await until('it is away', async () => (await nodesOf(a)).some(({ running }) => !running));
    const warned = /^warning: \d,\d+ of 16,384 slots have no node that answers; the result is incomplete$/m;
    const seen = await ran('search', '--limit', '1000');
    assert.match(seen.stderr, warned);
    assert.match((await ran('info')).stderr, warned);
    // All nodes know all scenes.
    assert.equal((await ran('info', 'c')).stderr, '');
    const place = join(folder, 'place.json');
    const ring = [
      [15, 45.5],
      [19, 45.5],
      [19, 47.5],
      [15, 47.5],
      [15, 45.5],
    ];
    await writeFile(place, JSON.stringify({ type: 'Polygon', coordinates: [ring] }));
    const series = await ran('series', place, '--expression', 'ndvi');
    assert.match(series.stderr, /^warning: \d+ of 16,384 slots have no node that answers/m);
    const lacking = tiles.find((id) => !seen.stdout.includes(id))!;
    const one = await tilewright('info', lacking, ...at);
    assert.deepEqual([one.code, /\[TW_QUERY_UNANSWERED\]/.test(one.stderr)], [1, true]);
    assert.match((await ran('node', 'locate', lacking)).stdout, / {2}away /);
  });

  await t.test(
    'a job that waits for nodes says so, and a command that follows it reports where it continues',
    async () => {
      const waiting = start(['split', '--geocode', 'u2', '--precision', '5', ...at]);
      let said = '';
      waiting.stdout?.resume();
      waiting.stderr?.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
      const closed = once(waiting, 'close');
      interface Jobs {
        jobs: { jobID: string; processID: string; message: string; progress: number }[];
      }
      const split = async () => (await get<Jobs>(a, '/jobs')).jobs.find((job) => job.processID === 'split')!;
      await until('it waits', async () =>
        /^waiting for the owners of \d+ slots/.test((await split()).message),
      );
      const { jobID, progress } = await split();
      assert.ok(progress < 100);

      await etcd.pause(0);
      await until('it is seen', async () => /etcd does not answer/.test((await ran('node', 'list')).stdout));
      assert.match(
        (await ran('node', 'list')).stdout,
        /\netcd does not answer; state as of \d\d:\d\d:\d\d UTC\n$/,
      );
      const again = ['--datetime', '2024-06-02T10:00:00Z', ...flags.slice(2), ...at];
      const refused = await tilewright('ingest', scene, ...again);
      assert.match(refused.stderr, /it is unknown whether job \S+ was accepted .*check "tilewright jobs"/);
      assert.doesNotMatch(refused.stderr, /jobs\/live/);

      await etcd.kill(0);
      const failed = await tilewright('ingest', scene, ...again);
      assert.match(
        failed.stderr,
        /job \S+ was not accepted: etcd did not answer in time \(nothing listens at/,
      );

      await ended(a.process, 'SIGKILL');
      await closed;
      assert.match(
        said,
        new RegExp(`Job ${jobID} continues .* tilewright jobs ${jobID} --follow --server ANOTHER`),
      );
    },
  );
});
