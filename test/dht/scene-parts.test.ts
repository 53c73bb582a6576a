/** Nodes of one cluster that read a remote scene together, each the cells that it owns. */
import assert from 'node:assert/strict';
import { mkdir, readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Bbox } from '../../src/grid/index.js';
import type { IngestResults } from '../../src/ingest/index.js';
import { type NodeConfig, openNode, type TilewrightNode } from '../../src/node.js';
import type { VerifyReport } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { type RemoteCatalog, remoteCatalog } from '../support/remote-catalog.js';
import { runJob, runRequest } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';
import { freePort } from './server-processes.js';

/** Most of a scene of 70 x 70 km, which lies in 12 slots. */
const PIXEL = 50;
const REGION: Bbox = [15.02, 47.3, 15.85, 47.82];
const PRECISION = 5;

interface TestCluster extends RemoteCatalog {
  nodes: TilewrightNode[];
  /** Inputs of a job that ingests all scenes. */
  inputs: object;
  run(node: TilewrightNode, more?: object): Promise<IngestResults>;
}

async function startNodes(
  t: TestContext,
  ids: string[],
  hostsOf: (host: string, index: number) => string[],
): Promise<TestCluster> {
  const catalog = await remoteCatalog(t, { ids, pixel: PIXEL });
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  const nodes: TilewrightNode[] = [];
  for (let i = 0; i < 3; i++) {
    const port = await freePort();
    const config: NodeConfig = {
      ...{ data: join(folder, `${i}`), memory: 256e6, cores: 1, reserve: 0, resume: true },
      hosts: { hosts: hostsOf(catalog.server.host, i), anyPublic: false },
      cluster: {
        ...{ store: pathToFileURL(join(folder, 'store')).href, etcd: etcd.urls, name: 'test', weight: 1 },
        ...{
          advertise: `http://127.0.0.1:${port}`,
          zone: `${i}`,
          secret: 'of all nodes',
          owners: 2,
          grace: 60_000,
        },
      },
    };
    const node = await openNode(config);
    atEnd(t, () => node.close());
    await node.listen('127.0.0.1', port);
    nodes.push(node);
  }
  for (const node of nodes) await settled(node);
  const inputs = { stac: { url: catalog.api }, bbox: REGION, precision: PRECISION };
  const run: TestCluster['run'] = (node, more = {}) => ingest(node, { ...inputs, ...more });
  return { ...catalog, nodes, inputs, run };
}

async function settled({ server }: TilewrightNode): Promise<void> {
  for (let tries = 0; tries < 600; tries++, await sleep(50)) {
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
    tiles.map(({ id, coverage, cloudCover, footprint, groups, via }) => [
      id,
      { id, coverage, cloudCover, footprint, groups, via },
    ]),
  );
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

async function logOf({ server }: TilewrightNode): Promise<string[]> {
  const { jobs } = (await server.inject('/jobs')).json<{ jobs: { jobID: string }[] }>();
  const texts: string[] = [];
  for (const { jobID } of jobs) {
    const { lines } = (await server.inject(`/jobs/${jobID}/logs`)).json<{ lines: { text: string }[] }>();
    texts.push(...lines.map(({ text }) => text));
  }
  return texts;
}

const skip = noEtcd;

test('the owners read their own cells, and the tiles are those of one node', { skip }, async (t) => {
  const { nodes, run, server } = await startNodes(t, ['a', 'b'], (host) => [host]);
  const [first, second, third] = nodes as [TilewrightNode, TilewrightNode, TilewrightNode];
  const west: Bbox = [15.02, 47.3, 15.4, 47.82];
  const part = await run(first, { bbox: west });
  const results = await run(second);
  assert.deepEqual([...part.failed, ...results.failed], []);
  const summaries = (await logOf(third)).filter((text) => text.startsWith('read by other nodes: '));
  assert.equal(summaries.length, 2);
  for (const { id } of nodes) assert.match(summaries.join(), new RegExp(`node ${id}: \\d+ cells`));

  const hosts = { hosts: [server.host], anyPublic: false };
  const single = await testNode(t, join(await tempFolder(t), 'single'), { hosts });
  const expected = await run(single);
  assert.equal(results.tiles, expected.tiles);
  assert.deepEqual(await contents(...nodes), await contents(single));
  for (const node of nodes) {
    assert.deepEqual((await runJob<VerifyReport>(node, 'verify', {})).results.problems, []);
    const left = await readdir(join(node.storage.dir, 'scratch'));
    assert.deepEqual(
      left.filter((name) => name.startsWith('remote')),
      [],
    );
  }

  server.requests.length = 0;
  assert.ok((await run(third)).scenes.every(({ unchanged }) => unchanged));
  assert.ok(server.requests.every(({ path }) => path.startsWith('/stac')));
  const { statusCode } = await third.server.inject({
    ...{ method: 'DELETE', url: '/collections/sentinel-2-l2a/scenes/a' },
    headers: { authorization: `Bearer ${third.ownerSecret}` },
  });
  assert.equal(statusCode, 204);
  await run(first);
  assert.deepEqual(await contents(...nodes), await contents(single));
});

test('a node reads the cells of owners that cannot', { skip }, async (t) => {
  const { nodes, run, server } = await startNodes(t, ['a'], (host, i) => (i === 0 ? [host] : []));
  const results = await run(nodes[0]!);
  assert.deepEqual(results.failed, []);
  const warnings = (await logOf(nodes[0]!)).filter((text) => text.includes('so this node reads them'));
  assert.equal(warnings.length, 2);
  for (const text of warnings) assert.match(text, /node \S+ cannot read its \d+ cells.*--allow-host/);

  const single = await testNode(t, join(await tempFolder(t), 'single'), {
    hosts: { hosts: [server.host], anyPublic: false },
  });
  await run(single);
  assert.deepEqual(await contents(...nodes), await contents(single));
});

test('no tiles are made of a file that changes before the owners open it', { skip }, async (t) => {
  const { nodes, run, inputs, server, folder } = await startNodes(t, ['a'], (host) => [host]);
  let opened = 0;
  server.fault = async ({ url, headers }) => {
    const isStart = url!.endsWith('/a/red.tif') && headers.range?.startsWith('bytes=0-');
    if (isStart && ++opened === 2) await utimes(join(folder, 'a', 'red.tif'), 1, 1);
    return false;
  };
  const { results } = await runRequest<IngestResults>(nodes[0]!, '/ingest', inputs);
  assert.deepEqual(
    results.failed.map(({ code }) => code),
    ['TW_REMOTE_CHANGED'],
  );
  assert.ok((await logOf(nodes[0]!)).some((text) => text.includes('TW_INGEST_PART_DIFFERS')));
  assert.deepEqual(await contents(...nodes), []);
  server.fault = undefined;
  assert.deepEqual((await run(nodes[0]!)).failed, []);
});
