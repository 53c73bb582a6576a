/** A server continues after its prediction process is killed, and the job reports the tile that failed. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { PAIR_DATES, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import { kill, until } from '../../jobs/servers.js';
import { atEnd } from '../../support/at-end.js';
import { children, HAS_PROC } from '../../support/child-processes.js';
import { start } from '../../support/command.js';
import { putModel } from '../../support/models.js';
import { onlyNightly } from '../../support/nightly.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { freePort } from '../../support/s3.js';
import { tempFolder } from '../../support/temp.js';

test('after kill -9 of a prediction process only its tile fails, and the server continues', {
  skip: onlyNightly || (!HAS_PROC && 'needs /proc'),
  timeout: 300_000,
}, async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await testNode(t, data);
  const dates = PAIR_DATES.slice(0, 1);
  const series = await writeSentinelLikeSeries(join(folder, 'scenes'), {
    size: { width: 800, height: 700 },
    dates,
  });
  for (const { path } of series)
    await ingest(node, { href: path, collection: 's', scale: 0.0001, maskBand: 5 });
  const tiles = await tilesOf(node);
  assert.ok(tiles.length > 2);
  for (const tile of tiles) await putModel(node.storage, [tile]);
  await node.close();

  // Prediction processes take a second to start, so that the kill meets the first one at its first tile.
  const slow = join(folder, 'slow.cjs');
  const wait = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)';
  writeFileSync(slow, `if (process.argv[1].endsWith('training/predict-worker.bundle.js')) ${wait};`);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const ask = async (path: string, body?: object) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(url + path, body && { method: 'POST', headers, body: JSON.stringify(body) });
    assert.ok(answer.ok, `${path}: ${answer.status}`);
    return answer.json();
  };
  const args = ['serve', '--data', data, '--port', `${port}`, '--cores', '1', '--reserve', '0'];
  const server = start(args, { NODE_OPTIONS: `--require ${slow}` });
  atEnd(t, () => kill(server));
  server.stdout?.resume();
  server.stderr?.resume();
  await until('the server answers', async () => (await fetch(`${url}/ready`)).ok);
  const predictors = () =>
    children(server.pid).filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('training/predict-worker.bundle.js');
      } catch {
        return false; // The process has ended in the meantime.
      }
    });
  const ended = async (id: string) => {
    await until(
      `${id} ended`,
      async () => server.exitCode !== null || !/accepted|running/.test((await ask(`/jobs/${id}`)).status),
    );
    assert.equal(server.exitCode, null, 'the server continues');
    return ask(`/jobs/${id}`);
  };

  const { jobID } = await ask('/processes/predict/execution', { inputs: { model: 'ndvi', engine: 'wasm' } });
  while (predictors().length === 0) await sleep(5);
  process.kill(predictors()[0]!, 'SIGKILL');
  assert.equal((await ended(jobID)).status, 'successful');
  const results = await ask(`/jobs/${jobID}/results`);
  assert.deepEqual([results.tiles, results.failures, results.failed.length], [tiles.length - 1, 1, 1]);
  const [{ tile, code, message }] = results.failed;
  assert.ok(
    tiles.some(({ id }) => tile.startsWith(id)),
    tile,
  );
  assert.match(`${code} ${message}`, /^TW_TRAIN_PREDICT .*its process ended with SIGKILL/);
  const { lines } = await ask(`/jobs/${jobID}/logs`);
  assert.ok(lines.some(({ text }: { text: string }) => text.includes(`${tile}: ${message} [${code}]`)));
  await until('its processes have ended', async () => predictors().length === 0);

  const again = await ask(`/jobs/${jobID}/retry`, {});
  assert.equal((await ended(again.jobID)).status, 'successful');
  const made = await ask(`/jobs/${again.jobID}/results`);
  assert.deepEqual([made.tiles, made.unchanged, made.failures], [1, tiles.length - 1, 0]);
});
