/** A curriculum over several nodes: all nodes agree on one first cell for each cluster, and start the others from it. */
import assert from 'node:assert/strict';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { SERIES_DATES, SERIES_ORIGIN, writeSentinelLikeSeries } from '../../data-samples/index.js';
import { Client, httpTransport } from '../../src/client/index.js';
import type { TextureResults, TrainResults } from '../../src/training/index.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { tempFolder } from '../support/temp.js';
import { freePort, isSettled, json, serve, until } from './server-processes.js';

test('nodes agree on the first cell of each cluster and start from models of each other', {
  skip: noEtcd,
  timeout: 300_000,
}, async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  const ports = [await freePort(), await freePort(), await freePort()];
  const nodes = ports.map((port) => serve(t, folder, port, etcd));
  for (const server of nodes) await until(`${server.url} settled`, () => isSettled(server));
  // Far apart, so that their cells are on different nodes.
  for (let i = 0; i < 5; i++) {
    const [clear] = await writeSentinelLikeSeries(join(folder, `scenes-${i}`), {
      dates: SERIES_DATES.slice(2, 3),
      ...{ name: `s${i}`, seed: i + 1, size: { width: 800, height: 800 } },
      origin: { x: SERIES_ORIGIN.x + 45_000 * i, y: SERIES_ORIGIN.y },
    });
    const flags = ['--collection', 's', '--precision', '5', '--scale', '0.0001', '--mask-band', '5'];
    await json('ingest', clear!.path, ...flags, '--server', nodes[0]!.url);
  }
  const whole = ['--min-coverage', '99'];
  const { collections } = await json<TextureResults>(
    ...['texture', '--clusters', '2', ...whole, '--server', nodes[0]!.url],
  );
  const { clusters } = collections[0]!;
  const client = new Client(httpTransport(nodes[0]!.url));
  const owners = new Map<string, string>();
  for (const place of clusters.flatMap(({ places }) => places)) {
    const [owner] = (await client.locate('geohash', place)).owners;
    owners.set(place, owner!.node);
  }
  const isApart = ({ places, middle }: { places: string[]; middle: string }) =>
    places.some((place) => owners.get(place) !== owners.get(middle));
  assert.ok(clusters.some(isApart), 'all places of each cluster are on one node');

  const options = ['--epochs', '2', '--transfer', 'similar', '--representatives-first', ...whole];
  const { models } = await json<TrainResults>('train', 'ndvi', ...options, '--server', nodes[1]!.url);
  assert.deepEqual(
    models.map(({ geocode }) => geocode),
    clusters.flatMap(({ places }) => places).sort(),
  );
  for (const { places, middle } of clusters)
    for (const geocode of places) {
      const { parent, transfer } = models.find((one) => one.geocode === geocode)!;
      if (geocode === middle) assert.equal(transfer!.fresh, 'chosen as representative of a cluster');
      else assert.equal(parent, `ndvi_s_g${middle}`);
    }

  // Before, during and after its tasks arrive at the nodes and meet there.
  const inputs = { model: 'ndvi', epochs: 1, transfer: 'similar', curriculum: true };
  for (let i = 0; i < 10; i++) {
    const stop = new AbortController();
    // From the moment that the job exists.
    const onProgress = () => setTimeout(() => stop.abort(), 12 * i);
    const hooks = { signal: stop.signal, onProgress };
    await assert.rejects(client.run('train', inputs, hooks), { code: 'TW_CLIENT_STOPPED' });
  }
  await json('texture', '--clusters', '2', ...whole, '--server', nodes[0]!.url);
  const scratch = ports.map((port) => join(folder, `node-${port}`, 'scratch'));
  assert.deepEqual((await Promise.all(scratch.map((one) => readdir(one)))).flat(), []);
});
