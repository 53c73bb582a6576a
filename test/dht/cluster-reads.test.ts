/** Every node of a cluster gives the same answers as a single node that has everything. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ListedNode } from '../../src/client/documents.js';
import { mapTileAt } from '../imagery/maps.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { type SceneOptions, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';
import { ended, freePort, get, isSettled, type Server, serve, until } from './server-processes.js';

/** 30 by 26 km, which is several slots. */
const WIDE = { pixel: 100, width: 300, height: 260 };
const SCENES: (SceneOptions & { inputs: object })[] = [
  { ...WIDE, seed: 1, cloud: 40, inputs: { collection: 'fields', datetime: '2024-06-01T10:00:00Z' } },
  { ...WIDE, seed: 2, edge: 100, inputs: { collection: 'fields', datetime: '2024-06-11T10:00:00Z' } },
  {
    ...WIDE,
    seed: 3,
    x: 512_000,
    inputs: { collection: 'hills', datetime: '2024-06-05T10:00:00Z', platform: 'made-up' },
  },
  {
    ...WIDE,
    seed: 4,
    inputs: { collection: 'squares', datetime: '2024-07-01T10:00:00Z', grid: 'quadtile', precision: 12 },
  },
];

interface Question {
  path: string;
  body?: object;
}

const AGGREGATIONS = [
  'total_count',
  'datetime_min',
  'datetime_max',
  'collection_frequency',
  'platform_frequency',
  'datetime_frequency',
  'cloud_cover_frequency',
  'pixel_coverage_frequency',
  'grid_geohash_frequency',
].join();

/** Near the centre of the scenes. */
const [LON, LAT] = [15.2, 47.74];

const square = (half: number) => {
  const [west, south, east, north] = [LON - half, LAT - half, LON + half, LAT + half];
  const ring = [
    [west, south],
    [east, south],
    [east + half / 3, north],
    [west, north],
    [west, south],
  ];
  return { type: 'Polygon', coordinates: [ring] };
};

const POINT = { type: 'Point', coordinates: [LON, LAT] };

function questions(item: string): Question[] {
  const asked: Question[] = [
    ...['/', '/collections', '/queryables', '/map', '/aggregations'].map((path) => ({ path })),
    { path: `/aggregate?aggregations=${AGGREGATIONS}&grid_geohash_frequency_precision=4` },
    { path: `/aggregate?aggregations=${AGGREGATIONS}&maxCloud=20&bbox=15,47.6,15.3,47.8` },
    { path: '/aggregate?aggregations=nonsense' },
    { path: '/aggregate', body: { aggregations: ['total_count'], intersects: POINT } },
    { path: '/search?limit=5' },
    { path: '/search?limit=200&sortby=eo:cloud_cover,-pixel_coverage' },
    { path: '/search?bbox=15.1,47.7,15.2,47.75&limit=1000' },
    { path: `/search?ids=${item},none` },
    { path: '/search?filter=nonsense' },
    { path: '/search', body: { intersects: POINT, fields: { exclude: ['links'] } } },
    { path: `/collections/fields/items/${item}` },
    { path: `/collections/hills/items/${item}` },
    { path: `/preview/${item}.png` },
    { path: `/preview/${item}.webp?expression=ndvi&colormap_name=viridis` },
    { path: '/preview/none.png' },
  ];
  for (const id of ['fields', 'hills', 'squares', 'none'])
    asked.push(
      ...['', '/items?limit=500', '/queryables', `/aggregate?aggregations=${AGGREGATIONS}`].map((rest) => ({
        path: `/collections/${id}${rest}`,
      })),
      { path: `/xyz/${id}/tilejson.json` },
      { path: `/xyz/${id}/tilejson.json?expression=ndvi` },
    );
  for (const [id, z] of [
    ['fields', 9],
    ['fields', 13],
    ['hills', 11],
    ['squares', 9],
    ['squares', 13],
  ] as const) {
    const { x, y } = mapTileAt(z, LON, LAT);
    asked.push(
      { path: `/xyz/${id}/${z}/${x}/${y}.png` },
      { path: `/xyz/${id}/${z}/${x + 1}/${y}.png?assets=nir&datetime=2024-06-01/2024-06-10` },
      { path: `/xyz/${id}/${z}/${x}/${y}@2x.webp?expression=ndvi&rescale=0,1&resampling=bilinear` },
      { path: `/xyz/${id}/${z}/${x}/${y}.png?expression=none` },
    );
  }
  asked.push(
    { path: '/timeseries', body: { geometry: POINT, expression: 'ndvi' } },
    { path: '/timeseries', body: { geometry: POINT, expression: 'nir' } },
    { path: '/timeseries', body: { geometry: square(0.004), expression: 'red > 700' } },
    { path: '/timeseries', body: { geometry: square(0.08), expression: 'ndvi' } },
    { path: '/timeseries', body: { geometry: square(0.05), expression: 'none' } },
    { path: '/timeseries', body: { geometry: square(0.05), expression: '1 +' } },
    { path: '/timeseries', body: { geometry: square(0.05), expression: 'ndvi', collections: ['fields'] } },
  );
  return asked;
}

interface Answer {
  status: number;
  type: string | null;
  etag: string | null;
  /** JSON is compared without the order of members. */
  body: unknown;
}

const OWN = new Set(['created', 'version', 'requestId']);

/** Removes everything that differs between two installations: addresses, versions and creation times of tiles, ids of requests. */
async function answerOf({ url }: Server, { path, body }: Question): Promise<Answer> {
  const answer = await fetch(url + path, {
    ...(body && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  const type = answer.headers.get('content-type');
  const { status, headers } = answer;
  const seen = { status, type, etag: headers.get('etag') };
  if (!type?.includes('json')) return { ...seen, body: bytes.toString('base64') };
  const text = bytes.toString().replaceAll(url, 'http://node');
  return { ...seen, body: JSON.parse(text, (name, value) => (OWN.has(name) ? undefined : value)) };
}

async function ingest({ url }: Server, href: string, inputs: object): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const precision = 5;
  const body = JSON.stringify({ href, scale: 0.0001, precision, maskBand: 5, ...inputs });
  const answer = await fetch(`${url}/ingest`, { method: 'POST', headers, body });
  assert.equal(answer.status, 201, await answer.clone().text());
  const { jobID } = (await answer.json()) as { jobID: string };
  for (let status = ''; status !== 'successful'; await sleep(50)) {
    const job = (await (await fetch(`${url}/jobs/${jobID}`)).json()) as { status: string };
    status = job.status;
    assert.notEqual(status, 'failed', JSON.stringify(job));
  }
}

interface Page {
  features: { id: string; collection: string }[];
}

interface Counted {
  aggregations: [{ value: number }];
  partial?: boolean;
  unansweredSlots?: number[];
}

const COUNT = '/aggregate?aggregations=total_count';

const count = async (server: Server) => (await get<Counted>(server, COUNT)).aggregations[0].value;

test('every node of a cluster answers as one node with everything', { skip: noEtcd }, async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  const alone = serve(t, folder, await freePort());
  const nodes: Server[] = [];
  for (let i = 0; i < 3; i++) nodes.push(serve(t, folder, await freePort(), etcd));
  const [a, b, c] = nodes as [Server, Server, Server];
  await until('the single node answers', async () => (await fetch(`${alone.url}/health`)).ok);
  for (const server of nodes) await until(`${server.url} settled`, () => isSettled(server));

  for (const [i, { inputs, ...options }] of SCENES.entries()) {
    const path = await writeTestScene(join(folder, `scene-${i}.tif`), options);
    await Promise.all([ingest(alone, path, inputs), ingest(nodes[i % 3]!, path, inputs)]);
  }
  const tiles = await count(alone);
  assert.ok(tiles > 100, `${tiles}`);
  for (const server of nodes) await until('all commits applied', async () => (await count(server)) === tiles);
  const owning = await get<{ nodes: ListedNode[] }>(a, '/cluster/nodes');
  assert.ok(owning.nodes.every(({ slots }) => slots > 0 && slots < 16_384));
  const { features } = await get<Page>(alone, '/collections/fields/items?limit=1');
  const item = features[0]!.id;

  const asked = questions(item);
  const expected = new Map<Question, Answer>();
  for (const question of asked) expected.set(question, await answerOf(alone, question));
  const statuses = new Set([...expected.values()].map(({ status }) => status));
  assert.deepEqual([...statuses].sort(), [200, 400, 404]);

  const sameFrom = async (server: Server, some: Question[]) => {
    for (const question of some)
      assert.deepEqual(
        await answerOf(server, question),
        expected.get(question),
        `${server.url}${question.path} ${JSON.stringify(question.body)}`,
      );
  };
  /** Asks the nodes in turn, so that each has about as many questions. */
  const inTurn = async (servers: Server[]) => {
    for (const [turn, server] of servers.entries())
      await sameFrom(
        server,
        asked.filter((_, i) => i % servers.length === turn),
      );
  };
  await t.test('all routes, through each node', async () => {
    await sameFrom(a, asked);
    // With two owners of each slot, every node lacks some of the tiles.
    await inTurn([b, c]);
  });

  await t.test('a picture changes with the commits of another node', async () => {
    const { x, y } = mapTileAt(11, LON, LAT);
    const path = `/xyz/hills/11/${x}/${y}.png`;
    const before = await answerOf(a, { path });
    const scene = await writeTestScene(join(folder, 'later.tif'), { ...WIDE, seed: 7, x: 512_000, edge: 20 });
    const inputs = { collection: 'hills', datetime: '2024-08-01T10:00:00Z', platform: 'made-up' };
    await Promise.all([ingest(alone, scene, inputs), ingest(c, scene, inputs)]);
    await until('the change is visible', async () => (await answerOf(a, { path })).etag !== before.etag);
    for (const question of asked) expected.set(question, await answerOf(alone, question));
    await inTurn([b, a]);
  });

  await t.test('all answers stay complete without one node', async () => {
    await ended(b.process, 'SIGKILL');
    await inTurn([a, c]);
  });

  await t.test('an answer reports the slots that it lacks', async () => {
    await ended(c.process, 'SIGKILL');
    const total = await count(alone);
    const { aggregations, partial, unansweredSlots = [] } = await get<Counted>(a, COUNT);
    const [{ value: reached }] = aggregations;
    assert.ok(reached > 0 && reached < total, `${reached} of ${total}`);
    assert.equal(partial, true);
    assert.ok(unansweredSlots.length > 1000, `${unansweredSlots.length}`);
    const series = { path: '/timeseries', body: { geometry: square(0.08), expression: 'ndvi' } };
    assert.equal(((await answerOf(a, series)).body as Counted).partial, true);
    // Known from the time when all nodes answered; nothing has changed since.
    assert.deepEqual(
      await answerOf(a, { path: '/collections' }),
      await answerOf(alone, { path: '/collections' }),
    );

    const { x, y } = mapTileAt(9, LON, LAT);
    const { status, body } = await answerOf(a, { path: `/xyz/fields/9/${x}/${y}.png` });
    assert.deepEqual([status, (body as { code: string }).code], [503, 'TW_QUERY_UNANSWERED']);
    const found = await get<Page>(alone, '/search?limit=1000');
    const answers = new Map<number, number>();
    for (const { id, collection } of found.features) {
      const { status } = await answerOf(a, { path: `/collections/${collection}/items/${id}` });
      answers.set(status, (answers.get(status) ?? 0) + 1);
    }
    assert.deepEqual([...answers.keys()].sort(), [200, 503]);
    assert.equal(answers.get(200), reached);
  });
});
