/** A node that lags behind the log must not report the end of a job before its searches find the tiles of the job. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeCube } from '../../hyperspectral/cubes.js';
import { noEtcd } from '../../support/etcd.js';
import { itemsOf, type Job, resultsOf, Servers, startJob, until } from '../servers.js';

test('a search after the end of a job finds its tiles, on a node that could not apply its commits', {
  skip: noEtcd,
}, async (t) => {
  const servers = await Servers.start(t);
  const [a, b] = servers.three;
  const folder = join(servers.folder, 'cubes');
  const segments = join(servers.folder, 'store', 'catalogue', 'segments');
  mkdirSync(folder);
  const href = writeCube(folder, 'cube', { side: 30 });
  b.process.kill('SIGSTOP');
  const id = await startJob(a, 'ingest', { href, collection: 'cubes', precision: 6 });
  await resultsOf(a, id);
  const taken = readdirSync(segments);
  assert.ok(taken.length > 0);
  for (const name of taken) renameSync(join(segments, name), join(servers.folder, name));
  b.process.kill('SIGCONT');
  const statusOf = async () => {
    const signal = AbortSignal.timeout(2000);
    const answer = await fetch(`${b.url}/jobs/${id}`, { signal }).catch(() => undefined);
    return answer?.ok ? ((await answer.json()) as Job).status : undefined;
  };
  for (let times = 0; times < 3; times++) assert.notEqual(await statusOf(), 'successful');
  for (const name of taken) renameSync(join(servers.folder, name), join(segments, name));
  await until('it reports the end', async () => (await statusOf()) === 'successful');
  assert.ok((await itemsOf(b, 'collections=cubes')).length > 0);
});
