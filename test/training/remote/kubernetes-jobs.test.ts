/**
 * Kubernetes Jobs, each of which trains a cell in its own container. The tests run the commands of the containers on this machine and
 * check the manifests against the schemas.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { SERIES_DATES, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import { kubernetesJob } from '../../../src/cli/commands/train-kubernetes.js';
import { retryTemporary } from '../../../src/cli/commands/train-locally.js';
import { unreachable } from '../../../src/client/index.js';
import { TilewrightError } from '../../../src/errors.js';
import { type ModelCard, summariseReasons } from '../../../src/training/index.js';
import { finished, start, tilewright } from '../../support/command.js';
import { eventually } from '../../support/eventually.js';
import { onlyNightly } from '../../support/nightly.js';
import { freePort } from '../../support/s3.js';
import { tempFolder } from '../../support/temp.js';
import { FREQUENT_CHECKPOINTS } from '../jobs/training-server.js';

const TOKEN = 'a token';
const FLAGS = ['--collection', 's', '--epochs', '2', '--max-cloud', '30'];

interface Results {
  job: string;
  mode: string;
  models: { id: string; version: string; geocode: string; model: string; metrics: object }[];
  skipped: { geocode: string; model: string; reason: string }[];
}

describe('a Kubernetes Job for each cell', { timeout: 300_000 }, () => {
  let folder: string;
  let server: ChildProcess;
  let serve: () => Promise<void>;
  let url: string;
  let partitioned: Results;
  let items: ReturnType<typeof kubernetesJob>[];
  const cleanUp: (() => Promise<void>)[] = [];

  const train = (...more: string[]) =>
    finished(start(['train', 'ndvi', ...FLAGS, '--server', url, ...more], { TILEWRIGHT_TOKEN: TOKEN }));
  /** Runs the command of a Job's container with its own folder for temporary files. */
  const pod = async (args: string[], name: string) => {
    const TMPDIR = join(folder, name);
    await mkdir(TMPDIR);
    const env = { TILEWRIGHT_TOKEN: TOKEN, TMPDIR, ...FREQUENT_CHECKPOINTS };
    const process = start([...args, '--format', 'json'], env);
    return { process, end: finished(process), left: () => readdir(TMPDIR, { recursive: true }) };
  };
  const argsOf = (cell: string) =>
    items.find(({ metadata }) => metadata.labels['tilewright/geocode'] === cell)!.spec.template.spec
      .containers[0]!.args;
  const withFlag = (args: string[], flag: string, value: string) => args.with(args.indexOf(flag) + 1, value);
  const get = async (path: string) => fetch(url + path);
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const bytesOf = async (id: string, version: string, file: string) =>
    Buffer.from(await (await get(`/models/${id}/versions/${version}/${file}`)).arrayBuffer());
  const versionsOf = async (id: string): Promise<{ version: string }[]> =>
    ((await (await get(`/models/${id}/versions`)).json()) as { versions: { version: string }[] }).versions;

  before(async () => {
    folder = await tempFolder({ after: (work) => void cleanUp.push(work as () => Promise<void>) });
    const data = join(folder, 'data');
    const options = { size: { width: 600, height: 520 }, dates: SERIES_DATES.slice(2) };
    const series = await writeSentinelLikeSeries(join(folder, 'scenes'), options);
    const paths = series.map(({ path }) => path);
    const about = ['--scale', '0.0001', '--mask-band', '5', '--data', data];
    for (const of of [
      [...paths, '--collection', 's'],
      [paths[0]!, '--collection', 'tiny', '--precision', '6'],
    ]) {
      const ingested = await tilewright('ingest', ...of, ...about);
      assert.equal(ingested.code, 0, ingested.stderr);
    }
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    serve = async () => {
      server = start(['serve', '--data', data, '--token', TOKEN, '--port', `${port}`, '--format', 'json']);
      await once(server.stdout!, 'data');
      server.stdout!.resume();
      server.stderr!.resume();
    };
    await serve();
    partitioned = JSON.parse((await train('--mode', 'partitioned', '--format', 'json')).stdout);
    const listed = await train('--mode', 'contained', '--place-memory', '900MB', '--manifests');
    assert.equal(listed.code, 0, listed.stderr);
    items = JSON.parse(listed.stdout).items;
  });
  after(async () => {
    server.kill('SIGKILL');
    for (const work of cleanUp) await work();
  });

  test('is printed once', () => {
    const geocodes = items.map(({ metadata }) => metadata.labels['tilewright/geocode']);
    assert.ok(partitioned.models.length > 1, JSON.stringify(partitioned));
    assert.deepEqual(geocodes.sort(), partitioned.models.map(({ geocode }) => geocode).sort());
    assert.equal(new Set(items.map(({ metadata }) => metadata.name)).size, items.length);
  });

  test('is printed for each model that can be trained; the reasons of the others are reported', async () => {
    const listed = await train('ndmi', '--mode', 'contained', '--manifests');
    assert.equal(listed.code, 0, listed.stderr);
    const jobs: typeof items = JSON.parse(listed.stdout).items;
    const namesOf = (some: typeof items) =>
      some.map(({ metadata: { labels } }) => `${labels['tilewright/geocode']} ${labels['tilewright/model']}`);
    const both: Results = JSON.parse((await train('ndmi', '--format', 'json')).stdout);
    assert.deepEqual(
      namesOf(jobs).sort(),
      both.models.map(({ geocode, model }) => `${geocode} ${model}`).sort(),
    );
    assert.ok(both.skipped.length > 0);
    for (const reason of summariseReasons({ skipped: both.skipped, failed: [] }, ['ndvi', 'ndmi']))
      assert.ok(listed.stderr.includes(`no Job for ${reason}`), `${reason} is not in ${listed.stderr}`);
    assert.equal(new Set(jobs.map(({ metadata }) => metadata.name)).size, jobs.length);
    for (const { spec, metadata } of jobs)
      assert.equal(spec.template.spec.containers[0]!.args[1], metadata.labels['tilewright/model']);
  });

  test('trains where it runs, and the node stores the same model as its own child', async () => {
    const [{ geocode, id, version }] = partitioned.models as [Results['models'][0]];
    const { end, left } = await pod(argsOf(geocode), 'trains');
    const { code, stdout, stderr } = await end;
    assert.equal(code, 0, stderr);
    assert.deepEqual(await left(), []);
    const results: Results = JSON.parse(stdout);
    assert.equal(results.mode, 'contained');
    const [model] = results.models as [Results['models'][0]];
    assert.equal(model.id, id);
    for (const file of ['model.json', 'weights.bin'])
      assert.deepEqual(await bytesOf(id, model.version, file), await bytesOf(id, version, file), file);
    const card = async (one: string) => {
      const whole: ModelCard = JSON.parse(String(await bytesOf(id, one, 'card.json')));
      const { version: _v, mode, job, filter: _f, seconds: _s, createdAt: _c, ...same } = whole;
      return { mode, job, same };
    };
    const [made, expected] = [await card(model.version), await card(version)];
    assert.deepEqual(made.same, expected.same);
    assert.equal(made.mode, 'contained');
    assert.equal(made.job, results.job);
    const job = (await (await get(`/jobs/${results.job}`)).json()) as { status: string; processID: string };
    assert.deepEqual([job.status, job.processID], ['successful', 'store-model']);
    const log = await (await get(`/jobs/${results.job}/logs`)).text();
    assert.match(log, new RegExp(`${geocode}: validation R2`));
    assert.ok(!log.includes(folder));
  });

  test('leaves nothing on the node if it is killed, and succeeds on a retry', {
    skip: onlyNightly,
  }, async () => {
    const [, { geocode, id }] = partitioned.models as [unknown, Results['models'][0]];
    const before = await versionsOf(id);
    const jobs = await (await get('/jobs')).text();
    const first = await pod(withFlag(argsOf(geocode), '--epochs', '9000'), 'killed');
    // At this point the training has run for a while.
    await eventually(
      'a checkpoint',
      async () => (await first.left()).some((file) => file.endsWith('checkpoint')),
      90_000,
    );
    first.process.kill('SIGKILL');
    await first.end;
    assert.deepEqual(await versionsOf(id), before);
    assert.equal(await (await get('/jobs')).text(), jobs);
    const { code, stderr } = await (await pod(argsOf(geocode), 'again')).end;
    assert.equal(code, 0, stderr);
    assert.equal((await versionsOf(id)).length, before.length + 1);
  });

  test('waits for a node that restarts', { skip: onlyNightly }, async () => {
    const [{ geocode, id }] = partitioned.models as [Results['models'][0]];
    const before = await versionsOf(id);
    const { process: command, end } = await pod(withFlag(argsOf(geocode), '--epochs', '40'), 'waits');
    const isTraining = () => {
      const { stdout } = spawnSync('ps', ['-A', '-o', 'ppid=,args='], { encoding: 'utf8' });
      return stdout
        .split('\n')
        .some((line) => Number.parseInt(line, 10) === command.pid && line.includes('worker.bundle.js'));
    };
    // At this point the container has fetched the tiles. It sends no request to the node until the training ends.
    await eventually('the training', isTraining, 60_000);
    server.kill('SIGTERM');
    await once(server, 'close');
    await eventually('the end of the training', () => !isTraining(), 120_000);
    await sleep(1000);
    await serve();
    const { code, stderr } = await end;
    assert.equal(code, 0, stderr);
    assert.equal((await versionsOf(id)).length, before.length + 1);
  });

  test('fails with the reason if the cell cannot be trained', async () => {
    const [{ geocode: good }] = partitioned.models as [Results['models'][0]];
    const found = await (await get('/search?collections=tiny&limit=1')).text();
    const geocode = /GEOHASH-(\w+)/.exec(found)![1]!;
    const tiny = withFlag(withFlag(argsOf(good), '--geocode', geocode), '--collection', 'tiny');
    const unfit = await (await pod(tiny, 'unfit')).end;
    assert.equal(unfit.code, 1);
    assert.match(unfit.stderr, /too few for training and validation patches .*\[TW_TRAIN_NOTHING\]/);
    if (process.platform === 'linux') {
      const small = await (await pod(withFlag(argsOf(good), '--place-memory', '60MB'), 'small')).end;
      assert.equal(small.code, 1);
      assert.match(small.stderr, /60 MB .*--place-memory.*\[TW_TRAIN_MEMORY\]/);
    }
    const several = await train('--mode', 'contained', '--here');
    assert.match(several.stderr, /--geocode.*\[TW_TRAIN_ONE_PLACE\]/);
  });

  test('an unknown model is refused, and so is one of tiles that have changed', async () => {
    const [{ geocode, id, version }] = partitioned.models as [Results['models'][0]];
    const filter = { collections: ['s'], geocode, maxCloud: 30 };
    const cell = (await (await post('/training/place', { model: 'ndvi', filter })).json()) as {
      tiles: string;
    };
    const card: ModelCard = JSON.parse(String(await bytesOf(id, version, 'card.json')));
    const { losses, metrics, spread, baseline, skill, choice, patches, split, bytesRead, seconds, engine } =
      card;
    const { predictions } = card;
    const weights = await bytesOf(id, version, 'weights.bin');
    const measured = {
      losses,
      metrics,
      spread,
      baseline,
      skill,
      choice,
      patches,
      split,
      bytesRead,
      seconds,
      predictions,
    };
    const good = { ...measured, weights: weights.toString('base64') };
    const store = (trained: object, more: object = {}, headers = {}) =>
      post(
        '/processes/store-model/execution',
        { inputs: { model: 'ndvi', filter, tiles: cell.tiles, engine, trained, ...more } },
        headers,
      );
    const ended = async (answer: Response) => {
      assert.equal(answer.status, 201, await answer.clone().text());
      const { jobID } = (await answer.json()) as { jobID: string };
      return eventually('the end of the job', async () => {
        const job = (await (await get(`/jobs/${jobID}`)).json()) as {
          status: string;
          error?: { code: string };
        };
        return ['successful', 'failed'].includes(job.status) && { status: job.status, code: job.error?.code };
      });
    };
    const versions = await versionsOf(id);
    const nan = Buffer.from(weights);
    nan.writeFloatLE(Number.NaN, 400);
    const wrong = { status: 'failed', code: 'TW_TRAIN_WRONG_MODEL' };
    for (const bad of [nan, weights.subarray(4), Buffer.alloc(0), Buffer.concat([weights, weights])])
      assert.deepEqual(await ended(await store({ ...good, weights: bad.toString('base64') })), wrong);
    // The weights belong to another kind of model.
    assert.deepEqual(await ended(await store(good, { model: 'ndmi' })), wrong);
    const unequal = { truth: predictions!.truth, predicted: predictions!.predicted.slice(1) };
    assert.deepEqual(await ended(await store({ ...good, predictions: unequal })), wrong);
    const changed = await ended(await store(good, { tiles: '0'.repeat(64) }));
    assert.deepEqual(changed, { status: 'failed', code: 'TW_TRAIN_CHANGED' });
    const refused: [Promise<Response>, number][] = [
      [store({ ...good, 'model.json': '{}' }), 400],
      [store(good, { path: '/etc/passwd' }), 400],
      [store({ ...good, metrics: { train: metrics.train } }), 400],
      [store({ ...good, seconds: -1 }), 400],
      [store(good, { model: '../ndvi' }), 400],
      [store(good, {}, { authorization: 'Bearer none' }), 401],
    ];
    for (const [answer, status] of refused)
      assert.equal((await answer).status, status, await (await answer).text());
    assert.deepEqual(await versionsOf(id), versions);
    // Without these changes the node accepts the model.
    assert.deepEqual(await ended(await store(good)), { status: 'successful', code: undefined });
    const [latest] = await versionsOf(id);
    assert.deepEqual(await bytesOf(id, latest!.version, 'weights.bin'), weights);
    assert.deepEqual(await readdir(join(folder, 'data/scratch')).catch(() => []), []);
  });

  test('uses the contained mode and its flags', async () => {
    const refused: [string[], RegExp][] = [
      [['--manifests'], /--mode contained/],
      [['--here'], /--mode contained/],
      [['--place-memory', '1GB', '--mode', 'partitioned'], /--mode contained/],
      [['--mode', 'contained', '--here', '--manifests'], /exclude each other/],
      [['ndmi', '--mode', 'contained', '--here'], /one model/],
    ];
    for (const [more, message] of refused) assert.match((await train(...more)).stderr, message);
    const nowhere = await tilewright('train', 'ndvi', '--data', folder, '--mode', 'contained', '--manifests');
    assert.match(nowhere.stderr, /needs --server/);
    for (const mode of [undefined, 'partitioned', 'distributed']) {
      const inputs = { model: 'ndvi', mode, placeMemory: 1e9 };
      const answer = await post('/processes/train/execution', { inputs });
      assert.equal(answer.status, 422);
      assert.equal(((await answer.json()) as { code: string }).code, 'TW_TRAIN_PLACE_MEMORY');
    }
  });
});

test('a request is repeated while the server is down, starting or overloaded, but not if it is refused', async () => {
  const { signal } = new AbortController();
  const answers = [
    unreachable('http://127.0.0.1:1', 'ECONNREFUSED'),
    new TilewrightError('TW_API_NOT_READY', 503, 'this node is still starting'),
    new TilewrightError('TW_API_BUSY', 429, 'too many requests'),
  ];
  const ask = async () => {
    const answer = answers.shift();
    if (answer) throw answer;
    return 'stored';
  };
  assert.equal(await retryTemporary(signal, ask, 0), 'stored');
  answers.push(new TilewrightError('TW_TRAIN_CHANGED', 409, 'the tiles have changed'));
  await assert.rejects(retryTemporary(signal, ask, 0), { code: 'TW_TRAIN_CHANGED' });
});

test('the Jobs are valid by the schemas of Kubernetes', async (t) => {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const tools = process.env['TILEWRIGHT_DEPLOY_TOOLS'] ?? join(cache, 'tilewright/deploy-tools');
  const env = { ...process.env, PATH: [tools, process.env['PATH']].join(delimiter) };
  if (spawnSync('kubernetes-validate', ['--help'], { env }).status !== 0)
    return t.skip('kubernetes-validate is missing; tools/install-deploy-tools.sh installs it');
  const folder = await tempFolder(t);
  const cell = {
    model: 'cloud-removal',
    memory: 2e9,
    collection: 'Sentinel 2',
    geocode: 'u26xe',
    flags: ['--seed', '2'],
  };
  const jobs = {
    cluster: kubernetesJob({ ...cell, server: 'http://tilewright-1.tilewright-nodes.tiles.svc:8080' }),
    single: kubernetesJob({ ...cell, geocode: '0'.repeat(32), server: 'http://127.0.0.1:8080' }),
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
