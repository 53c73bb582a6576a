/** The contained mode: a process with limits for each place, and the Jobs of Kubernetes that ask for it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { writeSentinelLikeSeries } from '../../data-samples/index.js';
import { trainingJob } from '../../src/cli/training-jobs.js';
import { type PlaceResult, type PlaceTask, trainPlaces } from '../../src/training/index.js';
import { start, tilewright } from '../support/command.js';
import { tempFolder } from '../support/temp.js';
import { field } from './fields.js';
import { writeDate } from './places.js';

const LINUX = process.platform === 'linux' ? false : 'the kernel holds the limit on Linux alone';

async function resultsOf(tasks: PlaceTask[], limit?: number): Promise<Map<string, PlaceResult>> {
  const results = new Map<string, PlaceResult>();
  for await (const result of trainPlaces(tasks, { engine: 'wasm', cores: 2, limit }))
    results.set(result.id, result);
  return results;
}

function weightsOf(results: Map<string, PlaceResult>, id: string) {
  const result = results.get(id)!;
  assert.ok('trained' in result, JSON.stringify(result));
  return result.trained.files;
}

describe('a limit of memory for each place', { skip: LINUX }, () => {
  const tasksIn = async (t: TestContext) => {
    const folder = await tempFolder(t);
    const task = (id: string, edge: number, dates: number): PlaceTask => ({
      ...{ id, model: 'ndvi', seed: 1, epochs: 2 },
      dates: Array.from({ length: dates }, (_, i) =>
        writeDate(folder, `${id}${i}`, field(edge, edge, { seed: i + 1, time: Date.UTC(2020, i, 1) })),
      ),
    });
    return [task('a', 128, 2), task('large', 1024, 8), task('b', 128, 2)];
  };

  test('is held, fails one place alone, and changes no bit of the others', {
    timeout: 240_000,
  }, async (t) => {
    const tasks = await tasksIn(t);
    const [a, , b] = tasks as [PlaceTask, PlaceTask, PlaceTask];
    const free = await resultsOf([a, b]);
    const held = await resultsOf(tasks, 230e6);
    for (const id of ['a', 'b']) assert.deepEqual(weightsOf(held, id), weightsOf(free, id));
    const failed = held.get('large')!;
    assert.ok('error' in failed, 'the large place has trained');
    assert.equal(failed.error.code, 'TW_TRAIN_MEMORY');
    assert.match(failed.error.message, /230 MB .*--place-memory/);
    weightsOf(await resultsOf([tasks[1]!], 2e9), 'large');
  });
});

test('a Job of Kubernetes for each place asks the node to train that place alone', {
  timeout: 240_000,
}, async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const size = { width: 800, height: 700 };
  const series = await writeSentinelLikeSeries(join(folder, 'scenes'), { size });
  const paths = series.map(({ path }) => path);
  const about = ['--collection', 's', '--scale', '0.0001', '--mask-band', '5'];
  const ingested = await tilewright('ingest', ...paths, ...about, '--data', data);
  assert.equal(ingested.code, 0, ingested.stderr);
  const server = start(['serve', '--data', data, '--port', '0', '--format', 'json', '--memory', '3GB']);
  t.after(() => server.kill('SIGKILL'));
  const [first] = (await once(server.stdout!, 'data')) as [Buffer];
  server.stdout!.resume();
  server.stderr!.resume();
  const { url } = JSON.parse(String(first));

  const flags = ['--epochs', '2', '--max-cloud', '30', '--min-coverage', '60', '--server', url];
  const train = (...more: string[]) => tilewright('train', 'ndvi', ...flags, ...more, '--format', 'json');
  const partitioned = JSON.parse((await train()).stdout);
  const contained = JSON.parse((await train('--mode', 'contained')).stdout);
  assert.equal(contained.mode, 'contained');
  assert.ok(contained.models.length > 1, JSON.stringify(contained));
  const scores = ({ models }: { models: { geocode: string; metrics: object }[] }) =>
    models.map(({ geocode, metrics }) => ({ geocode, metrics }));
  assert.deepEqual(scores(contained), scores(partitioned));

  const listed = await train('--mode', 'contained', '--place-memory', '900MB', '--manifests');
  assert.equal(listed.code, 0, listed.stderr);
  const { items }: { items: ReturnType<typeof trainingJob>[] } = JSON.parse(listed.stdout);
  const geocodes = items.map(({ metadata }) => metadata.labels['tilewright/geocode']);
  const places = [...contained.models, ...contained.skipped].map(({ geocode }) => geocode);
  assert.deepEqual(geocodes.sort(), places.sort());
  assert.equal(new Set(items.map(({ metadata }) => metadata.name)).size, items.length);

  // What the container runs.
  const [{ geocode, id }] = contained.models;
  const job = items.find(({ metadata }) => metadata.labels['tilewright/geocode'] === geocode)!;
  const { args } = job.spec.template.spec.containers[0]!;
  const alone = await tilewright(...args, '--format', 'json');
  assert.equal(alone.code, 0, alone.stderr);
  assert.deepEqual(scores(JSON.parse(alone.stdout)), scores({ models: [contained.models[0]] }));
  const card = await (await fetch(`${url}/models/${id}/card.json`)).json();
  assert.equal(card.mode, 'contained');

  const refused: [string[], RegExp][] = [
    [['--manifests'], /--mode contained/],
    [['--place-memory', '1GB', '--mode', 'partitioned'], /--mode contained/],
  ];
  for (const [more, message] of refused) assert.match((await train(...more)).stderr, message);
  const nowhere = await tilewright('train', 'ndvi', '--data', data, '--mode', 'contained', '--manifests');
  assert.match(nowhere.stderr, /give --server/);
});

test('the Jobs are good by the schemas of Kubernetes', async (t) => {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const tools = process.env['TILEWRIGHT_DEPLOY_TOOLS'] ?? join(cache, 'tilewright/deploy-tools');
  const env = { ...process.env, PATH: [tools, process.env['PATH']].join(delimiter) };
  if (spawnSync('kubernetes-validate', ['--help'], { env }).status !== 0)
    return t.skip('kubernetes-validate is missing; tools/install-deploy-tools.sh installs it');
  const folder = await tempFolder(t);
  const place = {
    model: 'cloud-removal',
    collection: 'Sentinel 2',
    geocode: 'u26xe',
    flags: ['--seed', '2'],
  };
  const jobs = {
    cluster: trainingJob({ ...place, server: 'http://tilewright-1.tilewright-nodes.tiles.svc:8080' }),
    single: trainingJob({ ...place, geocode: '0'.repeat(32), server: 'http://127.0.0.1:8080' }),
  };
  const validate = async (name: string, job: object) => {
    const path = join(folder, `${name}.yaml`);
    await writeFile(path, JSON.stringify(job));
    return ['1.27', '1.37'].map((version) =>
      spawnSync('kubernetes-validate', ['--strict', '-k', version, path], { env, encoding: 'utf8' }),
    );
  };
  for (const [name, job] of Object.entries(jobs)) {
    assert.ok(job.metadata.name.length <= 63, job.metadata.name);
    for (const { status, stdout, stderr } of await validate(name, job))
      assert.equal(status, 0, stdout + stderr);
  }
  const wrong = { ...jobs.single, spec: { ...jobs.single.spec, backoffLimit: 'one' } };
  for (const { status } of await validate('wrong', wrong)) assert.notEqual(status, 0);
  assert.equal(jobs.cluster.metadata.namespace, 'tiles');
  assert.match(JSON.stringify(jobs.cluster.spec.template.spec.affinity), /"tilewright-1"/);
  assert.equal(jobs.single.spec.template.spec.affinity, undefined);
});
