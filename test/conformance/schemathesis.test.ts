/**
 * schemathesis from PyPI sends valid and invalid requests according to the OpenAPI document, and checks every response against it.
 * The test is skipped if PyPI cannot be reached.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openNode, type TilewrightNode } from '../../src/node.js';
import { finished, start } from '../support/command.js';
import { putModel } from '../support/models.js';
import { isNightly, onlyNightly } from '../support/nightly.js';
import { ingest, tilesOf } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';
import { clientScript, installPython, outputOf } from './python.js';

interface Parameter {
  in: string;
  name: string;
  schema: object;
}

interface Operation {
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: { properties: Record<string, object> } }> };
  responses: Record<string, object>;
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
}

/** Operations that need more than existing names: a geometry that fits, a path that exists, a job that has failed, a cluster. */
const UNLIKELY = new Set([
  'delete /collections/{id}/items/{itemId}',
  'delete /collections/{id}/scenes/{sceneId}',
  'post /timeseries',
  'post /ingest',
  // A filter that selects a single place.
  'post /training/place',
  'post /training/check',
  'post /processes/store-model/execution',
  'post /processes/ingest/execution',
  // A classifier, whose labels fit.
  'post /processes/score-classifier/execution',
  'post /jobs/{id}/retry',
  // A single node has no cluster.
  'post /cluster/nodes/{id}/drain',
  'post /cluster/nodes/{id}/join',
  'post /cluster/rebalance',
]);

let folder: string;
/** A STAC document without Items, which subscriptions search. */
let archive: Server;
let server: ChildProcess;
let log: Promise<string>;
let url: string;
let python: Awaited<ReturnType<typeof installPython>>;
const cleanUp: (() => Promise<void>)[] = [];

before(async () => {
  folder = await tempFolder({ after: (work) => void cleanUp.push(work as () => Promise<void>) });
  [python] = await Promise.all([
    isNightly
      ? installPython(join(folder, 'python'), ['schemathesis==4.32.5'])
      : { reason: 'only in the nightly run' },
    serve(join(folder, 'data')),
  ]);
});

/** The document of the server does not depend on its data. */
async function serve(data: string): Promise<void> {
  if (isNightly) await makeSamples(data);
  archive = createServer((_request, answer) => answer.end('{"type":"FeatureCollection","features":[]}'));
  await once(archive.listen(0, '127.0.0.1'), 'listening');
  const limits = ['--max-upload', '2MB', '--allow-host', archiveHost()];
  server = start(['serve', '--data', data, '--port', '0', '--format', 'json', ...limits]);
  log = finished(server).then(({ stderr }) => stderr);
  const [first] = (await once(server.stdout as NodeJS.ReadableStream, 'data')) as [string];
  url = JSON.parse(first).url;
  for (const name of ['kept', 'doomed']) {
    const body = JSON.stringify({ name, every: '1d', inputs: { stac: { url: archiveUrl() } } });
    const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
    assert.equal((await fetch(`${url}/subscriptions`, request)).status, 201);
  }
}

/** Two dates, tiles made of them, a model, and a collection to delete from. */
async function makeSamples(data: string): Promise<void> {
  const node = await openNode({ data, memory: 256e6, cores: 2 });
  const options = { scale: 0.0001, maskBand: 5 };
  for (const [i, cloud] of [0, 20].entries()) {
    const href = await writeTestScene(join(folder, `s${i}.tif`), { seed: i + 1, cloud });
    const when = { id: `s${i}`, datetime: `2024-06-0${i + 1}T10:00:00Z` };
    await ingest(node, { href, collection: 'test', precision: 6, ...when, ...options });
    if (i > 0) continue;
    for (const collection of ['wide', 'doomed'])
      await ingest(node, { href, collection, precision: 5, ...when, ...options });
  }
  const filter = (collection: string) => ({ filter: { collections: [collection] } });
  await job(node, 'fill', filter('test'));
  await job(node, 'train', { model: 'ndvi', epochs: 1, ...filter('wide') });
  await job(node, 'texture', filter('test'));
  // The newest job, whose files are requested.
  await job(node, 'tensor', { bands: ['red'], ...filter('wide') });
  // One model to be deleted, and one to lose a version.
  const [one, other] = (await tilesOf(node)).filter(({ collection }) => collection === 'doomed');
  for (const tile of [one!, other!, other!]) await putModel(node.storage, [tile]);
  await node.close();
}

const archiveHost = () => `127.0.0.1:${(archive.address() as AddressInfo).port}`;
const archiveUrl = () => `http://${archiveHost()}/items.json`;

async function job(node: TilewrightNode, process: string, inputs: object): Promise<void> {
  const headers = { authorization: `Bearer ${node.ownerSecret}` };
  const request = {
    method: 'POST' as const,
    url: `/processes/${process}/execution`,
    headers,
    payload: { inputs },
  };
  const { jobID } = (await node.server.inject(request)).json();
  for (let status = ''; status !== 'successful'; await sleep(50)) {
    status = (await node.server.inject(`/jobs/${jobID}`)).json().status;
    assert.notEqual(status, 'failed', process);
  }
}

after(async () => {
  server.kill('SIGTERM');
  await log;
  archive.closeAllConnections();
  archive.close();
  for (const work of cleanUp) await work();
});

const ask = async <T>(path: string) => (await (await fetch(url + path)).json()) as T;

/** The document with existing names in place of arbitrary texts, so that not every response is 404. */
async function withRealNames(): Promise<Document> {
  const document = await ask<Document>('/openapi.json');
  const { features } = await ask<{ features: { id: string }[] }>(
    '/search?collections=test&source=raw&minCoverage=60&limit=1',
  );
  const { jobs } = await ask<{ jobs: { jobID: string; processID: string }[] }>('/jobs');
  const { models } = await ask<{
    models: { id: string; version: string; versions: number; collection: string }[];
  }>('/models');
  const [model] = models.filter(({ collection }) => collection === 'wide');
  const [doomedModel, doomedVersion] = models
    .filter(({ collection }) => collection === 'doomed')
    .sort((a, b) => a.versions - b.versions);
  const [x, y] = [4438, 2846];
  const names: Record<string, Record<string, string[]>> = {
    '/collections': { id: ['test'], itemId: [features[0]!.id], sceneId: ['s0'] },
    '/jobs': {
      id: [jobs.find(({ processID }) => processID === 'tensor')!.jobID],
      name: ['gu2d8j.npy', 'gu2d8j.json'],
    },
    '/models': {
      id: [model!.id],
      version: ['latest', 'best', model!.version],
      file: ['model.json', 'weights.bin', 'card.json', 'model.onnx'],
    },
    '/tiles': { itemId: [features[0]!.id], group: ['10m', 'mask'], band: ['blue', 'mask'] },
    '/preview': { itemId: [features[0]!.id], format: ['png', 'webp'] },
    '/xyz': { collection: ['test'], z: ['13'], x: [`${x}`], y: [`${y}`, `${y}@2x`], format: ['png'] },
    '/processes': { id: ['fill', 'ingest'] },
    '/subscriptions': { id: ['kept'] },
    '/cluster': { id: ['none'], grid: ['geohash'] },
  };
  const doomedNames: Record<string, Record<string, string[]>> = {
    '/subscriptions/{id}': { id: ['doomed'] },
    '/models/{id}': { id: [doomedModel!.id] },
    '/models/{id}/versions/{version}': { id: [doomedVersion!.id], version: [doomedVersion!.version] },
  };
  const doomed: Record<string, string[]> = { id: ['doomed'], itemId: ['doomed_s0_gu2d8j'], sceneId: ['s0'] };
  for (const [path, operations] of Object.entries(document.paths))
    for (const [method, { parameters = [] }] of Object.entries(operations))
      for (const parameter of parameters) {
        const isDoomed = method === 'delete' && path.startsWith('/collections');
        const known =
          (method === 'delete' && doomedNames[path]) || (isDoomed ? doomed : names[`/${path.split('/')[1]}`]);
        const choice = known?.[parameter.name];
        if (parameter.in === 'path' && choice) parameter.schema = { type: 'string', enum: choice };
      }
  const bodyOf = (path: string) =>
    document.paths[path]!['post']!.requestBody!.content['application/json']!.schema.properties;
  bodyOf('/similar')['tile'] = { type: 'string', enum: [features[0]!.id] };
  const { inputs: scored } = bodyOf('/processes/score/execution') as { inputs: { properties: object } };
  Object.assign(scored.properties, { model: { type: 'string', enum: [model!.id] } });
  // A random name could equal the name in a request for a missing subscription.
  bodyOf('/subscriptions')['name'] = { type: 'string', enum: ['made-by-post'] };
  const { inputs } = bodyOf('/subscriptions') as { inputs: { properties: { stac: { properties: object } } } };
  Object.assign(inputs.properties.stac.properties, { url: { type: 'string', enum: [archiveUrl()] } });
  bodyOf('/spectra')['geometry'] = { enum: [{ type: 'Point', coordinates: [15.03, 51.02] }] };
  return document;
}

test('every operation describes what it answers', async () => {
  const { paths } = await ask<Document>('/openapi.json');
  assert.ok(Object.keys(paths).length > 30);
  for (const [path, operations] of Object.entries(paths))
    for (const [method, { responses }] of Object.entries(operations)) {
      const text = JSON.stringify(responses);
      assert.ok(!text.includes('Default Response'), `${method} ${path}`);
      assert.ok(!/"schema":\{\}/.test(text), `${method} ${path}`);
      assert.ok(responses['4XX'] && responses['5XX'], `${method} ${path}`);
    }
});

test('schemathesis finds no difference between the document and the server', {
  skip: onlyNightly,
}, async (t) => {
  if (python.reason !== undefined) return t.skip(python.reason);
  const file = join(folder, 'openapi.json');
  const report = join(folder, 'report.json');
  await writeFile(file, JSON.stringify(await withRealNames()));
  const output = await outputOf(
    join(python.bin, 'schemathesis'),
    [
      ...['--config-file', await config(), 'run', file, '--url', url, '--checks', 'all'],
      ...[
        '--phases',
        'coverage,fuzzing',
        '--max-examples',
        '2',
        '--seed',
        '42',
        '--workers',
        '1',
        '--no-shrink',
      ],
      ...['--request-timeout', '20', '--continue-on-failure', '--no-color', '--warnings', 'off'],
      ...['--report', 'json', '--report-json-path', report],
    ],
    folder,
  );
  const { failures, operations, test_cases } = JSON.parse(await readFile(report, 'utf8'));
  assert.deepEqual(failures, [], output);
  assert.ok(operations.tested > 40 && test_cases.generated > 500, output);
  assert.doesNotMatch(output, /Schema Error/);
});

test('each operation was answered as asked at least once', { skip: onlyNightly }, async (t) => {
  if (python.reason !== undefined) return t.skip(python.reason);
  const { paths } = await ask<Document>('/openapi.json');
  server.kill('SIGTERM');
  const asked = new Map<string, string>();
  const answered = new Set<string>();
  for (const line of (await log).split('\n').filter((text) => text.startsWith('{'))) {
    const { reqId, req, res, level } = JSON.parse(line);
    assert.ok(level < 50, line);
    if (req) asked.set(reqId, `${req.method} ${req.url.split('?')[0]}`);
    if (res?.statusCode < 300) answered.add(asked.get(reqId) ?? '');
  }
  const missing: string[] = [];
  for (const [path, operations] of Object.entries(paths))
    for (const method of Object.keys(operations)) {
      const pattern = new RegExp(
        `^${method.toUpperCase()} ${path.replace(/\./g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`,
      );
      if (![...answered].some((one) => pattern.test(one))) missing.push(`${method} ${path}`);
    }
  assert.deepEqual(
    // An analysis requires exactly one collection, and a matching library or labels.
    missing.filter((one) => !UNLIKELY.has(one) && !one.startsWith('post /processes/analyse-')),
    [],
  );
});

async function config(): Promise<string> {
  const path = join(folder, 'schemathesis.toml');
  // The exceptions, each with its reason.
  await writeFile(path, `hooks = ${JSON.stringify(clientScript('schemathesis_hooks.py'))}\n`);
  return path;
}
