/** The folder of a single node is imported into a cluster of two real servers. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { EtcdStore } from '../../../src/coordination/index.js';
import type { DeriveResults } from '../../../src/derive/index.js';
import type { ImportReport } from '../../../src/dht/index.js';
import { CommitLog } from '../../../src/dht/log/log.js';
import { newVersion, Storage } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { start, tilewright } from '../../support/command.js';
import { EtcdCluster, noEtcd } from '../../support/etcd.js';
import { writeTestScene } from '../../support/scenes.js';
import { tempFolder } from '../../support/temp.js';
import { freePort, get, json, serve, storeOf, until } from '../server-processes.js';

interface Page {
  features: { id: string; properties: Record<string, unknown>; assets: Record<string, { href: string }> }[];
}

const FLAGS = ['--collection', 'made-up', '--reserve', '0', '--cores', '1'];

test('a folder is imported into a cluster, completely and once, even after a kill', {
  skip: noEtcd,
}, async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const single = join(folder, 'single');
  for (const day of [1, 2, 3, 4]) {
    const path = await writeTestScene(join(folder, `s${day}.tif`), { seed: day, x: 480_000 + 9000 * day });
    const when = ['--datetime', `2024-06-0${day}T10:00:00Z`, '--scale', '0.0001', '--precision', '6'];
    await json('ingest', path, ...FLAGS, ...when, '--data', single);
  }
  await json(
    'split',
    '--collection',
    'made-up',
    '--datetime',
    '2024-06-01',
    '--precision',
    '7',
    '--data',
    single,
  );
  await addModel(single);
  const own = await json<Page>('search', '--limit', '10000', '--data', single);
  const raw = own.features.filter(({ properties }) => properties['source'] === 'raw').length;
  const derived = own.features.length - raw;
  assert.ok(raw > 10 && derived > 0, `${raw} raw, ${derived} derived`);

  const etcd = await EtcdCluster.start(t);
  const place = ['--etcd', etcd.urls.join(), '--store', storeOf(folder)];
  const premature = await tilewright('node', 'join', '--data', single, ...place);
  assert.equal(premature.code, 1);
  assert.match(premature.stderr, /TW_DHT_NO_CLUSTER/);
  const servers = [serve(t, folder, await freePort(), etcd), serve(t, folder, await freePort(), etcd)];
  for (const { url } of servers) await until(`${url} ready`, async () => (await fetch(`${url}/ready`)).ok);
  const coordination = new EtcdStore(etcd.urls, 'default');
  atEnd(t, () => coordination.close());
  const head = async () => (await new CommitLog(coordination).bounds()).head;

  const before = await head();
  const planned = await json<ImportReport>('node', 'join', '--data', single, ...place, '--dry-run');
  assert.deepEqual(planned.scenes, { moved: 4, present: 0 });
  assert.deepEqual(planned.tiles, { moved: raw + derived, present: 0 });
  assert.deepEqual(planned.models, { moved: 1, present: 0 });
  assert.equal(await head(), before);

  // A missing file keeps only its scene from being imported.
  const victim = own.features.find(
    ({ id, properties }) => properties['source'] === 'raw' && id.includes('s4'),
  );
  assert.ok(victim, own.features.map(({ id }) => id).join());
  const lost = victim.assets['10m']!.href;
  await rename(lost, `${lost}.lost`);
  const killed = start(['node', 'join', '--data', single, ...place]);
  killed.stdout?.resume();
  killed.stderr?.resume();
  const closed = once(killed, 'close');
  await until('a first commit', async () => killed.exitCode !== null || (await head()) > before + 1);
  killed.kill('SIGKILL');
  await closed;
  const part = await tilewright('node', 'join', '--data', single, ...place, '--format', 'json');
  assert.equal(part.code, 3, part.stderr);
  const { failed, scenes } = JSON.parse(part.stdout) as ImportReport;
  assert.deepEqual(
    failed.map(({ code }) => code),
    ['TW_DHT_MOVE_IN_FILE'],
  );
  assert.equal(scenes.moved + scenes.present, 3);
  await rename(`${lost}.lost`, lost);
  const rest = await json<ImportReport>('node', 'join', '--data', single, ...place);
  assert.deepEqual(rest.scenes, { moved: 1, present: 3 });
  assert.deepEqual(rest.kept, []);

  const after = await head();
  const again = await json<ImportReport>('node', 'join', '--data', single, ...place);
  assert.equal(await head(), after);
  assert.deepEqual(again.scenes, { moved: 0, present: 4 });
  assert.deepEqual(again.tiles, { moved: 0, present: raw + derived });
  assert.deepEqual(again.models, { moved: 0, present: 1 });
  assert.equal(again.bytes, 0);

  const items = ({ features }: Page) =>
    features
      // The versions are those of the cluster.
      .map(({ id, properties }) => ({ ...properties, id, version: undefined }))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  for (const server of servers) {
    await until(
      'all commits',
      async () => (await get<Page>(server, '/search?limit=10000')).features.length === raw + derived,
    );
    const found = await get<Page>(server, '/search?limit=10000');
    assert.deepEqual(items(found), items(own));
    const one: Page['features'][number] = found.features.find(({ id }) => id === victim.id)!;
    assert.equal((await fetch(one.assets['10m']!.href)).status, 200);
    const { models } = await get<{ models: { id: string; version: string }[] }>(server, '/models');
    assert.equal(models.length, 1);
    const { id, version } = models[0]!;
    const { versions } = await get<{ versions: { version: string }[] }>(server, `/models/${id}/versions`);
    assert.deepEqual(
      versions.map((one) => one.version),
      versions
        .map((one) => one.version)
        .sort()
        .reverse(),
      'still in their order',
    );
    assert.deepEqual([versions.length, versions[0]!.version], [2, version]);
    for (const [i, one] of versions.entries()) {
      const weights = await fetch(`${server.url}/models/${id}/versions/${one.version}/weights.bin`);
      assert.deepEqual(Buffer.from(await weights.arrayBuffer()), Buffer.alloc(300, 7 - i));
    }
  }

  // Its inputs have new versions now, but it was made from the same tiles.
  const to = ['--precision', '7', '--datetime', '2024-06-01', '--server', servers[0]!.url];
  const split = await json<DeriveResults>('split', '--collection', 'made-up', ...to);
  assert.deepEqual([split.tiles, split.unchanged], [0, derived]);

  // Other cells with the same collection id.
  const other = join(folder, 'other');
  const coarse = ['--precision', '5', '--datetime', '2024-07-01T10:00:00Z'];
  await json('ingest', join(folder, 's1.tif'), ...FLAGS, ...coarse, '--data', other);
  const refused = await tilewright('node', 'join', '--data', other, ...place);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /made-up \(geohash cells of precision 5 here, geohash cells of precision 6/);
  assert.match(refused.stderr, /TW_DHT_MOVE_IN_CELLS/);
  assert.equal(await head(), after);
  await rm(other, { recursive: true });
});

async function addModel(dir: string): Promise<void> {
  const storage = await Storage.open(dir, { reserve: 0 });
  const place = { model: 'ndvi', collection: 'made-up', grid: 'geohash' as const, geocode: 'u2edk1' };
  for (const weight of [6, 7])
    await storage.models.put(
      { ...place, version: newVersion(), card: { made: 'up' } },
      { 'weights.bin': Buffer.alloc(300, weight) },
    );
  await storage.close();
}
