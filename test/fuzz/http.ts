/** Hostile requests to all routes of a node that holds tiles. An answer of 500 or more, or none, is a finding. */
import assert from 'node:assert/strict';
import type { InjectOptions } from 'fastify';
import { SERIES_DATES, writeSentinelLikeSeries } from '../../data-samples/index.js';
import { openNode } from '../../src/node.js';
import { runRequest } from '../support/run-job.js';
import { mutateJson, mutateText, pick, type Random } from './mutate.js';
import type { Target } from './targets.js';

const METHODS = ['GET', 'GET', 'GET', 'POST', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH'] as const;

/** Parameters of the routes and values that they take. */
const QUERY: Record<string, string[]> = {
  bbox: ['0,0,1,1', '170,-10,-170,10', '0,0,0,1,1,1'],
  datetime: ['2024-06-01', '2024-01-01/..', '../2024-01-01T00:00:00Z'],
  filter: ["eo:cloud_cover < 20 AND platform = 'x'", '{"op":"=","args":[{"property":"id"},"a"]}'],
  'filter-lang': ['cql2-text', 'cql2-json'],
  limit: ['1', '1000'],
  token: ['abc', 'eyJhIjoxfQ'],
  sortby: ['-datetime', '+eo:cloud_cover,id'],
  fields: ['id,-properties', 'properties.datetime'],
  assets: ['10m', 'mask'],
  expression: ['(b4-b3)/(b4+b3)', 'where(b1>0.1,b2,0)'],
  rescale: ['0,1', '0,0.3'],
  colormap_name: ['viridis'],
  bidx: ['1', '1,2,3'],
  geometry: ['{"type":"Point","coordinates":[0,0]}'],
  bands: ['red,nir', 'ndvi'],
};

const BODIES: unknown[] = [
  {
    collections: ['fields'],
    bbox: [0, 0, 1, 1],
    limit: 10,
    filter: { op: '<', args: [{ property: 'eo:cloud_cover' }, 20] },
  },
  {
    intersects: {
      type: 'Polygon',
      coordinates: [
        [
          [0, 0],
          [9, 0],
          [9, 9],
          [0, 0],
        ],
      ],
    },
    sortby: [{ field: 'datetime', direction: 'desc' }],
  },
  { inputs: { collection: 'fields', model: 'ndvi', href: '/nowhere/scene.tif' } },
  { ids: ['a', 'b'], query: { 'eo:cloud_cover': { lt: 5 } }, fields: { include: ['id'], exclude: [] } },
];

const HEADERS: Record<string, string[]> = {
  range: ['bytes=0-99', 'bytes=-5', 'bytes=9-1', 'bytes=0-0,5-9'],
  'if-none-match': ['*', '"x"', 'W/"x"'],
  'if-range': ['"x"', 'Wed, 21 Oct 2015 07:28:00 GMT'],
  accept: ['application/json', 'image/webp', 'text/event-stream;q=0', '*/*'],
  'accept-encoding': ['gzip', 'br;q=0.5, identity;q=0'],
  'content-type': [
    'application/json',
    'application/geo+json',
    'text/plain',
    'multipart/form-data; boundary=x',
  ],
  authorization: ['Bearer x', 'Basic eDp5'],
  'last-event-id': ['5', '-1'],
  origin: ['http://localhost', 'null'],
  prefer: ['respond-async', 'wait=5'],
};

/** Requests that start jobs are left out: jobs read other inputs than requests. */
const STARTS_A_JOB = /execution|^\/(?:ingest|train|fill|split|coalesce|predict|verify)\b/;

export async function httpTarget(scratch: string): Promise<Target> {
  const node = await openNode({ data: `${scratch}/data`, memory: 256e6, cores: 1 });
  await writeSentinelLikeSeries(`${scratch}/samples`, { dates: SERIES_DATES.slice(0, 1) });
  await runRequest(node, '/ingest', {
    href: `${scratch}/samples`,
    collection: 'fields',
    datetime: '2024-06-01',
  });
  const { paths } = (await node.server.inject('/openapi.json')).json();
  const { features } = (await node.server.inject('/search?limit=20')).json();
  const words = [
    'fields',
    ...features.map(({ id }: { id: string }) => id),
    '10m',
    'mask',
    'ndvi',
    '12',
    '0',
    'ingest',
    'weights.bin',
  ];
  const request = (random: Random): InjectOptions => {
    const path = pick(random, Object.keys(paths));
    let url = path.replace(/\{[^}]*\}/g, () => encodeURIComponent(pick(random, words)));
    const query = new URLSearchParams();
    while (random() < 0.6) {
      const name = pick(random, Object.keys(QUERY));
      const value = pick(random, QUERY[name]!);
      query.append(name, random() < 0.5 ? mutateText(random, value, words).slice(0, 4000) : value);
    }
    if (query.size > 0) url += `?${query}`;
    if (random() < 0.1) url = `/${mutateText(random, url, words).slice(0, 4000)}`;
    const method = pick(random, METHODS);
    const headers: Record<string, string> = {};
    while (random() < 0.4) {
      const name = pick(random, Object.keys(HEADERS));
      const value = pick(random, HEADERS[name]!);
      // Other bytes never reach a server: the client that makes the requests refuses them.
      headers[name] = (random() < 0.3 ? mutateText(random, value, []) : value)
        .replace(/[^\x20-\x7e]/g, '')
        .slice(0, 2000);
    }
    if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return { method, url, headers };
    const text = JSON.stringify(mutateJson(random, pick(random, BODIES))) ?? '';
    const payload = random() < 0.2 ? mutateText(random, text, words) : text;
    return { method, url, headers: { 'content-type': 'application/json', ...headers }, payload };
  };
  return {
    async run(random) {
      const asked = request(random);
      // The injector of fastify cannot send a path such as //[x.
      if (!URL.canParse(String(asked.url), 'http://localhost')) return;
      if (asked.method !== 'GET' && STARTS_A_JOB.test(String(asked.url))) return;
      const { statusCode, body } = await node.server.inject(asked);
      assert.ok(
        statusCode < 500,
        `${statusCode} of ${JSON.stringify(asked).slice(0, 1000)}: ${body.slice(0, 300)}`,
      );
    },
    close: () => node.close(),
  };
}
