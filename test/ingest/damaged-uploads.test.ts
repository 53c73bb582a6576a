/** A server with little memory: damaged files that once held decoders, and with them all other jobs, for ever. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fixtures } from '../raster/gdal.js';
import { atEnd } from '../support/at-end.js';
import { finished, start } from '../support/command.js';
import { tempFolder } from '../support/temp.js';

/** Says at the end of the process how much memory it had, in KiB. */
const REPORT = `import { isMainThread } from 'node:worker_threads';
if (isMainThread) process.on('exit', () => console.error('most memory: ' + process.resourceUsage().maxRSS + ' KiB'));`;
const MAX_KIB = 700 * 1024;

interface Job {
  jobID: string;
  status: string;
  error?: { message: string };
}

test('damaged uploads fail, or end when they are cancelled, and other jobs continue', async (t) => {
  const folder = await tempFolder(t);
  const flags = ['--data', join(folder, 'data'), '--port', '0', '--memory', '256MB', '--cores', '1'];
  const server = start(['serve', ...flags, '--format', 'json'], {
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(REPORT)}`,
  });
  atEnd(t, () => server.kill('SIGKILL'));
  const end = finished(server);
  const [first] = (await once(server.stdout as NodeJS.ReadableStream, 'data')) as [string];
  const { url } = JSON.parse(first);

  const upload = async (name: string, body: Uint8Array<ArrayBuffer>): Promise<Job> => {
    const query = `filename=${name}&collection=c&datetime=2024-06-01`;
    const headers = { 'content-type': 'application/octet-stream' };
    const answer = await fetch(`${url}/ingest?${query}`, { method: 'POST', headers, body });
    assert.equal(answer.status, 201, await answer.clone().text());
    return (await answer.json()) as Job;
  };
  const until = async ({ jobID }: Job, statuses: string[]): Promise<Job> => {
    for (;;) {
      const job = (await (await fetch(`${url}/jobs/${jobID}`)).json()) as Job;
      if (statuses.includes(job.status)) return job;
      await sleep(50);
    }
  };
  const ended = (job: Job) => until(job, ['successful', 'failed', 'dismissed']);
  const fixture = async (name: string) => new Uint8Array(await readFile(join(fixtures, name)));

  const zstd = await fixture('zstd.tif');
  const { length } = zstd;
  zstd.fill(0, length - 200);
  const grid = await fixture('hdf5/gridmet.nc');
  // The HDF5 library follows the attributes of this file in a circle.
  grid[7084] = 21;
  const jobs = [
    await upload('a.tif', zstd),
    await upload('b.tif', await fixture('corrupt/lerc-endless.tif')),
    await upload('c.nc', grid),
    await upload('d.tif', await fixture('zstd.tif')),
  ] as const;
  for (const job of jobs.slice(0, 2)) {
    const { status, error } = await ended(job);
    assert.equal(status, 'failed');
    assert.match(error?.message ?? '', /is corrupt: block \d+ .* cannot be decompressed/);
  }
  await until(jobs[2], ['running']);
  await sleep(1000);
  assert.equal((await until(jobs[2], ['running'])).status, 'running');
  await fetch(`${url}/jobs/${jobs[2].jobID}`, { method: 'DELETE' });
  assert.equal((await ended(jobs[2])).status, 'dismissed');
  assert.equal((await ended(jobs[3])).status, 'successful');

  server.kill('SIGTERM');
  const { code, stderr } = await end;
  assert.equal(code, 0, stderr);
  const kib = Number(/most memory: (\d+) KiB/.exec(stderr)?.[1]);
  assert.ok(kib > 0 && kib < MAX_KIB, `${kib} KiB`);
});
