/** A single node becomes the first node of a cluster by `node restore`; its derived tiles stay current. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DeriveResults } from '../../../src/derive/index.js';
import { EtcdCluster, noEtcd } from '../../support/etcd.js';
import { writeTestScene } from '../../support/scenes.js';
import { tempFolder } from '../../support/temp.js';
import { ended, freePort, json, SECRET, type Server, serve, storeOf, until } from '../server-processes.js';

test('after a restore, only a scene that is ingested again is split again', {
  skip: noEtcd,
}, async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const port = await freePort();
  const scenes: string[] = [];
  for (const day of [1, 2]) scenes.push(await writeTestScene(join(folder, `s${day}.tif`), { seed: day }));
  const ready = (server: Server) => until('ready', async () => (await fetch(`${server.url}/ready`)).ok);
  const deliver = (server: Server, day: number, scale: string) =>
    json(
      ...['ingest', scenes[day - 1]!, '--collection', 'c', '--id', `s${day}`, '--scale', scale],
      '--datetime',
      `2024-06-0${day}T10:00:00Z`,
      '--precision',
      '5',
      '--server',
      server.url,
    );
  const split = async (server: Server) => {
    const to = ['--precision', '6', '--server', server.url];
    const { tiles, unchanged, failures } = await json<DeriveResults>('split', '--collection', 'c', ...to);
    assert.equal(failures, 0);
    return { tiles, unchanged };
  };

  process.env['TILEWRIGHT_SECRET'] = SECRET;
  const alone = serve(t, folder, port, undefined, ['--store', storeOf(folder)]);
  await ready(alone);
  // More commits than the restored etcd will see, so its revisions are smaller.
  for (const scale of ['0.0001', '0.0002', '0.0003', '0.0004']) await deliver(alone, 2, scale);
  await deliver(alone, 1, '0.0001');
  const { tiles: all } = await split(alone);
  await deliver(alone, 1, '0.0002');
  const { tiles: ofOne } = await split(alone);
  assert.ok(ofOne > 0 && ofOne < all, `${ofOne} of ${all}`);
  await ended(alone.process, 'SIGTERM');

  const etcd = await EtcdCluster.start(t);
  await json('node', 'restore', '--etcd', etcd.urls.join(), '--store', storeOf(folder));
  const node = serve(t, folder, port, etcd);
  await ready(node);
  assert.deepEqual(await split(node), { tiles: 0, unchanged: all });
  await deliver(node, 1, '0.0003');
  assert.deepEqual(await split(node), { tiles: ofOne, unchanged: all - ofOne });
  assert.deepEqual(await split(node), { tiles: 0, unchanged: all });
});
