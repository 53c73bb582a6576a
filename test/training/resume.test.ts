/** A training that is cut off by kill -9 goes on from its checkpoint when the node starts again, to the same model. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeSentinelLikeSeries } from '../../data-samples/index.js';
import { kill, until } from '../jobs/servers.js';
import { atEnd } from '../support/at-end.js';
import { start } from '../support/command.js';
import { ingest, testNode } from '../support/node.js';
import { runProcess } from '../support/process.js';
import { freePort } from '../support/s3.js';
import { tempFolder } from '../support/temp.js';

test('after kill -9 a training goes on from its checkpoint, to the same weights', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await testNode(t, data);
  const series = await writeSentinelLikeSeries(join(folder, 'scenes'), { size: { width: 800, height: 700 } });
  for (const { path } of series)
    await ingest(node, { href: path, collection: 's', scale: 0.0001, maskBand: 5 });
  const short = { model: 'ndvi', filter: { collections: ['s'] }, epochs: 1 };
  const { models } = await runProcess<{ models: { id: string; geocode: string }[] }>(node, 'train', short);
  const [{ id, geocode }] = models as [(typeof models)[number]];
  await node.close();

  const port = await freePort();
  const serve = async () => {
    const server = start(['serve', '--data', data, '--port', `${port}`, '--cores', '1', '--reserve', '0']);
    atEnd(t, () => kill(server));
    server.stdout?.resume();
    server.stderr?.resume();
    await until('the server answers', async () => (await fetch(`${url}/ready`)).ok);
    return server;
  };
  const url = `http://127.0.0.1:${port}`;
  const ask = async (path: string, init?: RequestInit) => (await fetch(`${url}${path}`, init)).json();
  const done = (job: string) =>
    until(`${job} done`, async () => (await ask(`/jobs/${job}`)).status === 'successful');
  const weights = async () => {
    const response = await fetch(`${url}/models/${id}/weights.bin`);
    return Buffer.from(await response.arrayBuffer());
  };
  const scratch = join(data, 'scratch');
  const checkpoints = () =>
    readdirSync(scratch, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith('.new'))
      .map(({ parentPath, name }) => join(parentPath, name));
  let server = await serve();

  for (const mode of ['partitioned', 'distributed'])
    await t.test(mode, async () => {
      // Long enough for a checkpoint, which is written after five seconds.
      const inputs = { ...short, mode, filter: { collections: ['s'], geocode }, epochs: 400 };
      const execute = () =>
        ask('/processes/train/execution', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ inputs }),
        });
      const { jobID } = await execute();
      await until('a checkpoint', async () => checkpoints().length === 1);
      const [file] = checkpoints();
      await kill(server);
      const head = (await readFile(file!)).toString('latin1').split('\n', 1)[0]!;
      const { losses } = JSON.parse(head);
      assert.ok(losses.length > 0 && losses.length < inputs.epochs);

      server = await serve();
      await done(jobID);
      const resumed = await weights();
      const { card } = await ask(`/models/${id}`);
      assert.deepEqual([card.job, card.mode], [jobID, mode]);
      assert.deepEqual(card.losses.slice(0, losses.length), losses);
      const { lines } = await ask(`/jobs/${jobID}/logs`);
      const goesOn = lines.some(
        ({ text }: { text: string }) => text === `goes on from epoch ${losses.length}`,
      );
      assert.equal(goesOn, mode === 'distributed', JSON.stringify(lines));
      assert.deepEqual(readdirSync(scratch), [], 'what it would have gone on from is gone');

      const again = await execute();
      await done(again.jobID);
      assert.deepEqual(await weights(), resumed);
      assert.deepEqual((await ask(`/models/${id}`)).card.losses, card.losses);
    });
});
