/** All nodes of a cluster forget a job at the same time, including its leader. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { toArray } from '../../../src/async/index.js';
import { EtcdStore } from '../../../src/coordination/index.js';
import { entrySummaryOf, JobEntries } from '../../../src/jobs/cluster/entries.js';
import { JobArtifacts } from '../../../src/jobs/cluster/registry.js';
import { openNode, type TilewrightNode } from '../../../src/node.js';
import { firstVersionAt, type JobRecord, openObjectStore } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { EtcdCluster, noEtcd } from '../../support/etcd.js';
import { freePort } from '../../support/s3.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../servers.js';

const DAY = 86_400_000;

interface Node {
  node: TilewrightNode;
  stop(): Promise<void>;
}

/** A folder with an empty store, an etcd, and functions that start nodes over both. */
async function emptyCluster(t: TestContext) {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start({ after: (work) => atEnd(t, work) });
  const start = nodesOf(t, folder, etcd);
  return { folder, etcd, start };
}

function nodesOf(t: TestContext, folder: string, etcd: EtcdCluster) {
  const store = pathToFileURL(join(folder, 'store')).href;
  return async (name: string, port: number): Promise<Node> => {
    const node = await openNode({
      data: join(folder, name),
      memory: 512e6,
      cores: 1,
      reserve: 0,
      resume: true,
      cluster: {
        store,
        etcd: etcd.urls,
        name: 'default',
        zone: name,
        weight: 1,
        grace: 2000,
        ...{ advertise: `http://127.0.0.1:${port}`, secrets: ['the secret of the test'] },
      },
    });
    let stopped: Promise<void> | undefined;
    const stop = () => {
      stopped ??= node.close();
      return stopped;
    };
    atEnd(t, stop);
    await node.listen('127.0.0.1', port);
    return { node, stop };
  };
}

function jobOf(finished: number): JobRecord {
  return {
    ...{ id: `${firstVersionAt(finished - 1000)}aaaaaa`, process: 'verify', status: 'successful' },
    ...{
      created: finished - 1000,
      updated: finished,
      finished,
      message: '',
      inputs: {},
      results: {},
      lines: 1,
    },
    tiles: { total: 0, done: 0, failed: 0, skipped: 0 },
  };
}

test('all nodes list the same jobs, and keep nothing of expired ones', {
  skip: noEtcd,
}, async (t) => {
  const { folder, etcd, start } = await emptyCluster(t);
  const ports = [await freePort(), await freePort()] as const;
  const first = await Promise.all([start('a', ports[0]), start('b', ports[1])]);

  const jobs = [9, 7.5, 6].map((days) => jobOf(Date.now() - Math.round(days * DAY)));
  const [gone, hidden, shown] = jobs.map(({ id }) => id) as [string, string, string];
  const coordination = new EtcdStore(etcd.urls, 'default');
  const store = await openObjectStore(pathToFileURL(join(folder, 'store')).href);
  const [documents, objects] = [new JobEntries(coordination), new JobArtifacts(store)];
  atEnd(t, async () => {
    await coordination.close();
    store.close();
  });
  // The state after the leader of the jobs has ended them.
  const [leader] = first;
  const home = leader.node.id;
  const { catalogue } = leader.node.storage;
  await first[1].stop();
  for (const job of jobs) {
    const line = { time: job.updated, level: 'info', text: 'successful', status: 'successful' } as const;
    await catalogue.write([...catalogue.jobs.set(job), catalogue.logs.set(`${job.id}/0000000001`, line)]);
    const end = objects.endFolder(job.id);
    await objects.putEnd(end, job, [{ seq: 1, ...line }]);
    const added = await documents.create({ home, job: entrySummaryOf(job) });
    assert.ok('revision' in added);
    assert.ok(await documents.end({ home, job: entrySummaryOf(job), folder: end }, added.revision));
  }
  await leader.stop();

  const nodes = await Promise.all([start('a', ports[0]), start('b', ports[1])]);
  for (const port of ports) {
    const ask = async (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
    for (const [id, status] of [
      [gone, 404],
      [hidden, 404],
      [shown, 200],
    ] as const)
      for (const what of ['', '/results', '/logs']) {
        const answer = await ask(`/jobs/${id}${what}`);
        assert.equal(answer.status, status, `${port} /jobs/${id}${what}: ${await answer.text()}`);
      }
    const list = (await (await ask('/jobs')).json()) as { jobs: { jobID: string }[] };
    assert.deepEqual(
      list.jobs.map(({ jobID }) => jobID),
      [shown],
    );
  }
  const kept = [hidden, shown];
  await until('nothing is left in etcd and the store', async () => {
    const stored = (await toArray(documents.all())).map(({ entry }) => entry.job.id);
    const names = new Set((await toArray(store.list('jobs/'))).map(({ name }) => name.split('/')[1]!));
    return `${stored}` === `${kept}` && `${[...names].sort()}` === `${kept}`;
  });
  await until('nothing is left in the catalogue', async () => {
    const { jobs, logs } = nodes[0].node.storage.catalogue;
    const lines = (await toArray(logs.keys())).map((key) => key.split('/')[0]);
    return `${await toArray(jobs.keys())}` === `${kept}` && `${lines}` === `${kept}`;
  });
});

test('an old job whose end was not published before the node stopped is published, not run again', {
  skip: noEtcd,
}, async (t) => {
  const { folder, etcd, start } = await emptyCluster(t);
  const port = await freePort();
  const first = await start('a', port);
  const coordination = new EtcdStore(etcd.urls, 'default');
  atEnd(t, () => coordination.close());
  const documents = new JobEntries(coordination);
  const job = jobOf(Date.now() - 9 * DAY);
  const store = await openObjectStore(pathToFileURL(join(folder, 'store')).href);
  atEnd(t, async () => store.close());
  await new JobArtifacts(store).putInputs(job);
  const { catalogue } = first.node.storage;
  // The state if etcd was unreachable when the job ended.
  await catalogue.write(catalogue.jobs.set(job));
  const { finished: _, ...running } = entrySummaryOf(job);
  const home = first.node.id;
  await first.stop();
  await documents.create({ home, job: { ...running, status: 'running' } });

  const { node } = await start('a', port);
  await until('its end is published', async () => !(await documents.get(job.id))?.isLive);
  assert.deepEqual(await node.storage.catalogue.jobs.get(job.id), job);
});
