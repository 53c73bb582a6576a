/** One model over the nodes of a cluster: three servers, etcd and a shared folder. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ComparedRun, Comparison } from '../../../src/cli/compare/runs.js';
import {
  type CheckResults,
  describeTraffic,
  type ModelCard,
  type TrainResults,
} from '../../../src/training/index.js';
import {
  ended,
  get,
  isSettled,
  type Job,
  kill,
  nodeId,
  OPTIONS,
  resultsOf,
  type Server,
  Servers,
  startJob,
  until,
} from '../../jobs/servers.js';
import { tilewright } from '../../support/command.js';
import { noEtcd } from '../../support/etcd.js';
import { onlyNightly } from '../../support/nightly.js';
import { writeTestScene } from '../../support/scenes.js';
import { FREQUENT_CHECKPOINTS } from './training-server.js';

/** Long enough for several checkpoints, which are written after half a second each. */
const EPOCHS = 20;

/** Returns the processes by parent, and if they take part in a distributed training. */
function members(): { pid: number; parent: number }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        if (!readFileSync(`/proc/${name}/cmdline`, 'utf8').includes('distributed/worker.bundle.js'))
          return [];
        const parent = /^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${name}/status`, 'utf8'))![1];
        return [{ pid: Number(name), parent: Number(parent) }];
      } catch {
        return []; // The process has ended in the meantime.
      }
    });
}

test('one model trained by all nodes', { skip: noEtcd || process.platform !== 'linux' }, async (t) => {
  const servers = await Servers.start(t, FREQUENT_CHECKPOINTS);
  const [a, b, c] = servers.three;
  const ids = await Promise.all([a, b, c].map(nodeId));
  // Far enough from each other to be in slots of several nodes.
  const href = await Promise.all(
    Array.from({ length: 5 }, (_, cell) =>
      writeTestScene(join(servers.folder, `p${cell}.tif`), {
        ...{ width: 300, height: 300, seed: 1 + cell, x: 500_000 + 60_000 * cell, edge: 0, cloud: 0 },
      }),
    ),
  );
  const datetime = '2024-06-01T10:00:00Z';
  await resultsOf(a, await startJob(a, 'ingest', { href, datetime, ...OPTIONS }));
  const training = { model: 'ndvi', mode: 'distributed', epochs: 2, seed: 5 };

  let trained: TrainResults;
  await t.test(
    'all nodes with cells train the model, and each sends the bytes of an all-reduce',
    async () => {
      const started = await startJob(a, 'train', training);
      trained = await resultsOf<TrainResults>(b, started);
      assert.equal(trained.mode, 'distributed');
      const [model, ...others] = trained.models;
      assert.ok(model && others.length === 0);
      const { distributed, metrics, baseline } = model;
      const { members, steps, parameters, leastBytes, places } = distributed!;
      assert.ok(members.length >= 2, JSON.stringify(members));
      assert.ok(members.every(({ node }) => ids.includes(node)));
      const size = members.length;
      assert.equal(leastBytes, ((2 * (size - 1)) / size) * 4 * parameters * steps);
      for (const { node, bytesSent, ratio } of members) {
        assert.equal(ratio, bytesSent / leastBytes);
        assert.ok(ratio > 1 && ratio < 1.05, `${node}: ${ratio}`);
      }
      assert.equal(steps, 2 * Math.ceil(Math.max(...members.map(({ patches }) => patches)) / 32));
      assert.ok(metrics.validation.mse < baseline.mean.mse);
      assert.deepEqual(trained.pooled!.model.r2.toFixed(9), metrics.validation.r2.toFixed(9));
      const { lines } = await get<{ lines: { text: string }[] }>(c, `/jobs/${started}/logs`);
      assert.ok(lines.some(({ text }) => text.includes(`${parameters} parameters, ${steps} steps`)));

      const partitioned = await resultsOf<TrainResults>(
        c,
        await startJob(b, 'train', { ...training, mode: 'partitioned' }),
      );
      assert.deepEqual(trained.skipped, partitioned.skipped);
      // Each cell has the same patches and baselines as in a training of its own model.
      assert.deepEqual(
        places.map(({ geocode, baseline }) => ({ geocode, baseline })),
        partitioned.models.map(({ geocode, baseline }) => ({ geocode, baseline })),
      );
      assert.deepEqual(trained.pooled!.linear, partitioned.pooled!.linear);
    },
  );

  await t.test('the model is stored once, with a card of all tiles', async () => {
    const { id, geocode, distributed } = trained.models[0]!;
    const cells = distributed!.places.map((cell) => cell.geocode);
    assert.ok(geocode === 'world' || cells.every((cell) => cell.startsWith(geocode)), geocode);
    const { card } = await get<{ card: ModelCard }>(c, `/models/${id}`);
    assert.equal(card.mode, 'distributed');
    assert.deepEqual(card.distributed, distributed);
    assert.deepEqual(
      [...new Set(card.data.map((tile) => tile.id.split('_').at(-1)!.slice(1)))].sort(),
      cells,
    );
  });

  await t.test(
    'the nodes of a region share one base and some patches, and each adapts its places',
    async () => {
      const inputs = { ...training, mode: 'regional', epochs: 3, fresh: false };
      const started = await startJob(b, 'train', inputs);
      const { base, models, skipped } = await resultsOf<TrainResults>(c, started);
      assert.deepEqual(skipped, trained.skipped);
      assert.ok(base!.distributed!.members.length >= 2);
      assert.deepEqual(
        models.map(({ geocode }) => geocode),
        base!.distributed!.places.map(({ geocode }) => geocode),
      );
      for (const { geocode, adaptation } of models) {
        assert.deepEqual(adaptation!.base, { id: base!.id, version: base!.version });
        assert.equal(adaptation!.others, Math.round(adaptation!.patches / 2), geocode);
        const place = base!.distributed!.places.find((one) => one.geocode === geocode)!;
        assert.equal(adaptation!.errors.base.mse, place.metrics.validation.mse);
      }
      // Any node knows the base, and adapts it to the same models.
      const again = await resultsOf<TrainResults>(
        a,
        await startJob(a, 'train', { ...inputs, base: base!.id }),
      );
      assert.deepEqual(
        again.models.map(({ metrics }) => metrics.validation),
        models.map(({ metrics }) => metrics.validation),
      );
    },
  );

  await t.test('compare tells what each mode sends, and stores nothing', { skip: onlyNightly }, async () => {
    const usage = await get<{ nodes: { id: string }[]; unanswered: string[] }>(b, '/cluster/usage');
    assert.deepEqual(usage.unanswered, []);
    assert.deepEqual(usage.nodes.map(({ id }) => id).sort(), ids.toSorted());
    const { models } = await get<{ models: { id: string; version: string }[] }>(a, '/models');
    const out = join(servers.folder, 'report');
    const asked = ['ndvi', '--epochs', '2', '--seeds', '5', '--server', b.url, '--out', out];
    const done = await tilewright('compare', ...asked, '--format', 'json');
    assert.equal(done.code, 0, done.stderr);
    const { runs, idleBytesPerSecond } = JSON.parse(done.stdout) as Comparison;
    assert.ok(idleBytesPerSecond! > 0);
    assert.deepEqual(
      runs.map(({ usage, disturbedBy }) => [usage.incomplete, disturbedBy]),
      [
        [[], []],
        [[], []],
      ],
    );
    const [partitioned, distributed] = ['partitioned', 'distributed'].map(
      (mode) => runs.find((run) => run.mode === mode)!,
    ) as [ComparedRun, ComparedRun];
    assert.deepEqual(distributed.results.models[0]!.metrics, trained.models[0]!.metrics);
    const { members } = distributed.results.models[0]!.distributed!;
    const sent = members.reduce((sum, { bytesSent }) => sum + bytesSent, 0);
    assert.ok(distributed.usage.sentBytes! > sent, `${distributed.usage.sentBytes} of ${sent} bytes`);
    assert.ok(partitioned.usage.sentBytes! > 0);
    for (const run of runs)
      assert.deepEqual(
        run.usage.nodes.map(({ id }) => id),
        ids.toSorted(),
      );
    assert.deepEqual((await get<{ models: object[] }>(a, '/models')).models, models);
  });

  await t.test('where one node holds all that is trained on, it says so', async () => {
    const { geocode } = trained.models[0]!.distributed!.places[0]!;
    const filter = { geocode };
    const { models } = await resultsOf<TrainResults>(a, await startJob(c, 'train', { ...training, filter }));
    const { nodes, members } = models[0]!.distributed!;
    assert.deepEqual([nodes, members.length], [3, 1]);
    assert.match(
      describeTraffic(models[0]!.distributed!),
      /nothing sent, because one of 3 nodes has the only place$/,
    );
  });

  await t.test(
    'jobs of several nodes do not wait for each other, and the same seed gives the same model',
    { skip: onlyNightly },
    async () => {
      const started = await Promise.all([a, b, c].map((server) => startJob(server, 'train', training)));
      for (const id of started) {
        const { models } = await resultsOf<TrainResults>(a, id);
        assert.deepEqual(
          models.map(({ metrics }) => metrics),
          [trained.models[0]!.metrics],
        );
      }
    },
  );

  await t.test('nobody gets in without the secret', async () => {
    const { hostname, port } = new URL(a.url);
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), hostname);
      let text = '';
      socket.on('data', (bytes) => {
        text += bytes;
      });
      socket.on('error', reject).on('close', () => resolve(text));
      socket.write(`CONNECT /cluster/internal/ring/x HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
    });
    assert.match(answer, /^HTTP\/1\.1 401 /);
  });

  /** Long enough for the test to interrupt the training. */
  const long = { ...training, epochs: 2000 };
  const byNode = (node: string) => [a, b, c][ids.indexOf(node)]!;
  const victim = () => byNode(trained.models[0]!.distributed!.members.at(-1)!.node);
  const isTraining = (server: Server, id: string) => async () => {
    const { status, progress } = await get<Job & { progress: number }>(server, `/jobs/${id}`);
    assert.ok(['accepted', 'running'].includes(status), `${id} is ${status}`);
    const { lines } = await get<{ lines: { text: string }[] }>(server, `/jobs/${id}/logs`);
    const { length } = trained.models[0]!.distributed!.members;
    return lines.filter(({ text }) => text.includes('patches, engine')).length === length && progress >= 0;
  };
  const failsCleanly = async (server: Server, id: string) => {
    const { status, error } = await ended(server, id);
    assert.equal(status, 'failed');
    assert.match(error!.code, /^TW_TRAIN_RING$|^TW_JOB_RUN_LOST$/);
    await until('all processes have ended', async () => members().length === 0);
    return error!.message;
  };

  await t.test('a job that is cancelled ends on all nodes', async () => {
    const id = await startJob(a, 'train', long);
    await until('it is under way', isTraining(a, id));
    await fetch(`${b.url}/jobs/${id}`, { method: 'DELETE' });
    assert.equal((await ended(c, id)).status, 'dismissed');
    await until('all processes have ended', async () => members().length === 0);
  });

  await t.test('a process that is killed ends the job for all, with its name', async () => {
    const id = await startJob(a, 'train', long);
    await until('it is under way', isTraining(a, id));
    const one = members().find(({ parent }) => parent === victim().process.pid);
    process.kill(one!.pid, 'SIGKILL');
    assert.match(await failsCleanly(b, id), new RegExp(`node ${ids[[a, b, c].indexOf(victim())]} was lost`));
  });

  await t.test('so does a node that hangs', async () => {
    const lost = victim();
    const [leader] = [a, b, c].filter((server) => server !== lost) as [Server];
    const id = await startJob(leader, 'train', long);
    await until('it is under way', isTraining(leader, id));
    lost.process.kill('SIGSTOP');
    const { status, error } = await ended(leader, id);
    lost.process.kill('SIGCONT');
    assert.deepEqual([status, error!.code], ['failed', 'TW_JOB_RUN_LOST']);
    assert.ok(error!.message.includes(ids[[a, b, c].indexOf(lost)]!), error!.message);
    await until('all processes have ended', async () => members().length === 0);
    await until('it is back', () => isSettled(lost));
  });

  await t.test(
    'after a kill, a retry resumes from the last checkpoint, to the same weights',
    { skip: onlyNightly },
    async () => {
      const inputs = { ...training, epochs: EPOCHS, seed: 6 };
      const lost = victim();
      const [leader] = [a, b, c].filter((server) => server !== lost) as [Server];
      const memberServers = trained.models[0]!.distributed!.members.map(({ node }) => byNode(node));
      const kept = () => memberServers.flatMap((server) => keptIn(servers, server));
      const before = new Set(kept());
      /** Returns the lowest epoch of the last checkpoints of all members. */
      const epochsKept = () => {
        const folders = kept().filter((folder) => !before.has(folder));
        return folders.length < memberServers.length ? 0 : Math.min(...folders.map(lastEpochIn));
      };
      const beginningOf = async (id: string) => {
        const { lines } = await get<{ lines: { text: string }[] }>(leader, `/jobs/${id}/logs`);
        return lines
          .map(({ text }) => /(?:resumes from|starts with) epoch (\d+)/.exec(text)?.[1])
          .find(Boolean);
      };
      const retry = async (id: string) => {
        const answer = await fetch(`${leader.url}/jobs/${id}/retry`, { method: 'POST' });
        return ((await answer.json()) as Job).jobID;
      };
      const weights = async () => {
        const answer = await fetch(`${leader.url}/models/${trained.models[0]!.id}/weights.bin`);
        return Buffer.from(await answer.arrayBuffer());
      };

      const first = await startJob(leader, 'train', inputs);
      await until('all have a checkpoint', async () => epochsKept() > 0);
      process.kill(members().find(({ parent }) => parent === lost.process.pid)!.pid, 'SIGKILL');
      await failsCleanly(leader, first);
      const epoch = epochsKept();

      const second = await retry(first);
      await until('it has begun', async () => (await beginningOf(second)) !== undefined);
      assert.equal(await beginningOf(second), String(epoch));
      await until('all have the next one', async () => epochsKept() > epoch);
      await kill(lost.process);
      const message = await failsCleanly(leader, second);
      assert.ok(message.includes(ids[[a, b, c].indexOf(lost)]!), message);
      const next = epochsKept();

      const back = servers.serve(lost.port);
      // Every node must see it run: a node that does not gives its places to others, which is another training.
      for (const server of [back, ...[a, b, c].filter((one) => one !== lost)])
        await until('all see that it is back', () => isSettled(server));
      const third = await retry(second);
      const { models } = await resultsOf<TrainResults>(leader, third);
      assert.equal(await beginningOf(third), String(next));
      const resumed = await weights();
      assert.deepEqual(
        kept().filter((folder) => !before.has(folder)),
        [],
      );

      const whole = await startJob(leader, 'train', inputs);
      const { models: expected } = await resultsOf<TrainResults>(leader, whole);
      assert.equal(await beginningOf(whole), '1');
      assert.deepEqual(await weights(), resumed);
      assert.deepEqual(models[0]!.metrics, expected[0]!.metrics);
      for (const { node, ratio } of models[0]!.distributed!.members)
        assert.ok(ratio! > 1 && ratio! < 1.05, `${node}: ${ratio}`);
    },
  );

  await t.test(
    'every node checks its own places, and all choose the same ones to train again',
    { skip: onlyNightly },
    async () => {
      const later = { href, datetime: '2024-07-01T10:00:00Z', ...OPTIONS };
      await resultsOf(a, await startJob(a, 'ingest', later));
      const check = async (server: Server) => {
        const id = await startJob(server, 'check', { model: 'ndvi' });
        const { seconds: _, ...results } = await resultsOf<CheckResults & { seconds: number }>(a, id);
        return results;
      };
      const checked = await check(a);
      const places = checked.places.map(({ geocode }) => geocode).sort();
      const cells = trained.models[0]!.distributed!.places.map(({ geocode }) => geocode);
      assert.deepEqual(places, cells);
      assert.deepEqual(new Set(checked.places.map(({ dates }) => dates)), new Set([1]));
      assert.equal(checked.fresh, cells.length);
      assert.deepEqual(await check(b), checked);
      const stale = { model: 'ndvi', mode: 'regional', stale: true };
      const { models, leftOut, ...results } = await resultsOf<TrainResults>(
        a,
        await startJob(b, 'train', stale),
      );
      assert.deepEqual([models, results.checked], [[], { fresh: cells.length, drifted: 0, unknown: 0 }]);
      assert.deepEqual(
        leftOut!.map(({ geocode }) => geocode),
        cells,
      );
    },
  );
});

/** Returns the folders of the checkpoints that a node can resume from. */
function keptIn({ folder }: Servers, { port }: Server): string[] {
  const scratch = join(folder, `node-${port}`, 'scratch');
  return readdirSync(scratch)
    .filter((name) => name.startsWith('kept-'))
    .map((name) => join(scratch, name));
}

function lastEpochIn(folder: string): number {
  const heads = readdirSync(folder)
    .filter((name) => !name.endsWith('.new'))
    .map((name) => readFileSync(join(folder, name), 'latin1').split('\n', 1)[0]!);
  return Math.max(0, ...heads.map((head) => JSON.parse(head).losses.length));
}
