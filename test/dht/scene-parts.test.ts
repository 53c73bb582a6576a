/** Nodes of one cluster that read a remote scene together, each the cells that it owns. */
import assert from 'node:assert/strict';
import { mkdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Bbox } from '../../src/grid/index.js';
import type { IngestResults } from '../../src/ingest/index.js';
import { openNode, type TilewrightNode } from '../../src/node.js';
import type { VerifyReport } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { type RemoteCatalog, remoteCatalog } from '../support/remote-catalog.js';
import { runJob, runRequest } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';
import { filesOfScenes, freePort } from './server-processes.js';

/** Most of a scene of 70 x 70 km, which lies in 12 slots. */
const PIXEL = 50;
const REGION: Bbox = [15.02, 47.3, 15.85, 47.82];
const PRECISION = 5;

/** Starts three nodes of one cluster. All of them may fetch from the host `shared`, the first one from `own`, too. */
async function startNodes(t: TestContext, shared: string, own: string): Promise<TilewrightNode[]> {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  const nodes: TilewrightNode[] = [];
  for (let i = 0; i < 3; i++) {
    const port = await freePort();
    const place = { advertise: `http://127.0.0.1:${port}`, zone: `${i}` };
    const same = { name: 'test', weight: 1, secrets: ['of all nodes'], owners: 2, grace: 60_000 };
    const node = await openNode({
      ...{ data: join(folder, `${i}`), memory: 256e6, cores: 1, reserve: 0, resume: true },
      hosts: { hosts: i === 0 ? [shared, own] : [shared], anyPublic: false },
      cluster: { store: pathToFileURL(join(folder, 'store')).href, etcd: etcd.urls, ...place, ...same },
    });
    atEnd(t, () => node.close());
    await node.listen('127.0.0.1', port);
    nodes.push(node);
  }
  for (const node of nodes) await settled(node);
  return nodes;
}

async function settled({ server }: TilewrightNode): Promise<void> {
  for (let tries = 0; tries < 400; tries++, await sleep(500)) {
    const { slots } = (await server.inject('/cluster/placement')).json<{ slots: { state: string }[][] }>();
    if (slots.every((owners) => owners.length === 2 && owners.every(({ state }) => state === 'available')))
      return;
  }
  assert.fail('the placement is not settled');
}

/** The tiles of one or all nodes, once each, without what differs between two stores. */
async function contents(...nodes: TilewrightNode[]) {
  const tiles = (await Promise.all(nodes.map(tilesOf))).flat();
  const byId = new Map(
    tiles.map(({ id, coverage, cloudCover, footprint, groups, via, warnings }) => [
      id,
      { id, coverage, cloudCover, footprint, groups, via, warnings },
    ]),
  );
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The lines of the log of a job, or of all jobs. */
async function logOf({ server }: TilewrightNode, job?: string): Promise<string[]> {
  const { jobs } = (await server.inject('/jobs')).json<{ jobs: { jobID: string }[] }>();
  const texts: string[] = [];
  for (const { jobID } of jobs) {
    if (job !== undefined && jobID !== job) continue;
    const { lines } = (await server.inject(`/jobs/${jobID}/logs`)).json<{ lines: { text: string }[] }>();
    texts.push(...lines.map(({ text }) => text));
  }
  return texts;
}

test('the nodes of a cluster read a remote scene together', { skip: noEtcd }, async (t) => {
  const catalog = await remoteCatalog(t, { ids: ['a', 'b'], pixel: PIXEL });
  const other = await remoteCatalog(t, { pixel: PIXEL });
  const nodes = await startNodes(t, catalog.server.host, other.server.host);
  const [first, second, third] = nodes as [TilewrightNode, TilewrightNode, TilewrightNode];
  const hosts = { hosts: [catalog.server.host, other.server.host], anyPublic: false };
  const single = await testNode(t, join(await tempFolder(t), 'single'), { hosts, cores: 1 });
  const inputsOf = ({ api }: RemoteCatalog, more: object = {}) => ({
    ...{ stac: { url: api }, bbox: REGION, precision: PRECISION },
    ...more,
  });

  await t.test('the owners read their own cells, and the tiles are those of one node', async () => {
    const west: Bbox = [15.02, 47.3, 15.4, 47.82];
    const part = await ingest(first, inputsOf(catalog, { bbox: west }));
    const results = await ingest(second, inputsOf(catalog));
    assert.deepEqual([...part.failed, ...results.failed], []);
    const summaries = (await logOf(third)).filter((text) => text.startsWith('read by other nodes: '));
    assert.equal(summaries.length, 2);
    for (const { id } of nodes) assert.match(summaries.join(), new RegExp(`node ${id}: \\d+ cells`));
    assert.equal(results.tiles, (await ingest(single, inputsOf(catalog))).tiles);
    assert.deepEqual(await contents(...nodes), await contents(single));
    for (const node of nodes) assert.deepEqual(await filesOfScenes(node.storage.dir), []);
    assert.deepEqual((await runJob<VerifyReport>(first, 'verify', {})).results.problems, []);
  });

  await t.test('they read what a store lacks, and nothing else', async () => {
    const { requests } = catalog.server;
    requests.length = 0;
    const { scenes } = await ingest(third, inputsOf(catalog));
    assert.deepEqual(
      scenes.map(({ unchanged }) => unchanged),
      [true, true],
    );
    assert.ok(requests.every(({ path }) => path.startsWith('/stac')));
    const { statusCode } = await third.server.inject({
      ...{ method: 'DELETE', url: '/collections/sentinel-2-l2a/scenes/a' },
      headers: { authorization: `Bearer ${third.ownerSecret}` },
    });
    assert.equal(statusCode, 204);
    requests.length = 0;
    await ingest(first, inputsOf(catalog));
    assert.ok(requests.every(({ path }) => path.startsWith('/stac') || path.startsWith('/a/')));
    assert.deepEqual(await contents(...nodes), await contents(single));
  });

  await t.test('no tiles are made of a file that changes before the owners open it', async () => {
    const { server, folder } = catalog;
    let opened = 0;
    server.fault = async ({ url, headers }) => {
      const isStart = url!.endsWith('/a/red.tif') && headers.range?.startsWith('bytes=0-');
      if (isStart && ++opened === 2) await utimes(join(folder, 'a', 'red.tif'), 1, 1);
      return false;
    };
    const inputs = inputsOf(catalog, { collection: 'changed', stac: { url: catalog.api, limit: 1 } });
    const { id, results } = await runRequest<IngestResults>(first, '/ingest', inputs);
    server.fault = undefined;
    assert.deepEqual(
      results.failed.map(({ code }) => code),
      ['TW_REMOTE_CHANGED'],
    );
    assert.ok((await logOf(first, id)).some((text) => text.includes('TW_INGEST_PART_DIFFERS')));
    assert.equal(await first.storage.catalogue.collections.get('changed'), undefined);
    assert.deepEqual((await ingest(first, inputs)).failed, []);
  });

  await t.test('a node reads the cells of owners that cannot', async () => {
    const inputs = inputsOf(other, { collection: 'other' });
    const { id, results } = await runRequest<IngestResults>(first, '/ingest', inputs);
    assert.deepEqual(results.failed, []);
    const warnings = (await logOf(first, id)).filter((text) => text.includes('so this node reads them'));
    assert.equal(warnings.length, 2);
    for (const text of warnings) assert.match(text, /node \S+ cannot read its \d+ cells.*--allow-host/);
    await ingest(single, inputs);
    const isOther = ({ id }: { id: string }) => id.startsWith('other_');
    assert.deepEqual((await contents(...nodes)).filter(isOther), (await contents(single)).filter(isOther));
  });

  await t.test('tiles of all nodes carry the warnings of the scene, and tiles made of them too', async () => {
    const doubtful = {
      collection: 'doubtful',
      stac: { url: catalog.api, limit: 1 },
      scale: 0.0001,
      offset: -0.2,
    };
    for (const node of [first, single])
      assert.deepEqual((await ingest(node, inputsOf(catalog, doubtful))).failed, []);
    const tiles = (await tilesOf(single)).filter(({ collection }) => collection === 'doubtful');
    assert.match(tiles[0]!.warnings!.join(), /the offset is in doubt/);
    for (const { warnings } of tiles) assert.deepEqual(warnings, tiles[0]!.warnings);
    const filter = { ids: tiles.slice(0, 4).map(({ id }) => id) };
    for (const node of [second, single]) await runJob(node, 'split', { filter, precision: 6 });
    const isDoubtful = ({ id }: { id: string }) => id.startsWith('doubtful');
    const all = (await contents(single)).filter(isDoubtful);
    assert.deepEqual((await contents(...nodes)).filter(isDoubtful), all);
    const derived = all.filter(({ id }) => id.includes('_split-'));
    assert.ok(derived.length > 20);
    for (const { id, warnings } of derived) {
      assert.deepEqual(warnings, tiles[0]!.warnings);
      for (const { server } of nodes) {
        const item = (await server.inject(`/collections/doubtful/items/${id}`)).json();
        assert.deepEqual(item.properties.warnings, warnings);
      }
    }
  });
});
