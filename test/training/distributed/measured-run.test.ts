/** A measured distributed training stores nothing, and neither reads nor removes checkpoints of other trainings. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeSentinelLikeSeries } from '../../../data-samples/index.js';
import { eventually } from '../../support/eventually.js';
import { ingest, testNode } from '../../support/node.js';
import { tempFolder } from '../../support/temp.js';

/** Far more epochs than this test trains. */
const EPOCHS = 9000;

test('a run that stores nothing does not touch the checkpoints of other jobs', {
  timeout: 240_000,
}, async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await testNode(t, data);
  const [first] = await writeSentinelLikeSeries(join(folder, 'scenes'), {
    size: { width: 800, height: 700 },
  });
  await ingest(node, { href: first!.path, collection: 's', scale: 0.0001, maskBand: 5 });
  const headers = { authorization: `Bearer ${node.ownerSecret}` };
  const inputs = { model: 'ndvi', mode: 'distributed', epochs: EPOCHS, filter: { minCoverage: 60 } };

  /** Starts a training, and cancels it when its log contains the first message and `isDone` returns true. */
  const beginning = async (more: object, isDone: () => Promise<boolean>) => {
    const url = '/processes/train/execution';
    const started = await node.server.inject({
      method: 'POST',
      url,
      headers,
      payload: { inputs: { ...inputs, ...more } },
    });
    const id = started.json().jobID;
    const line = await eventually(
      'the training begins',
      async () => {
        const { lines } = (await node.server.inject({ url: `/jobs/${id}/logs`, headers })).json();
        const found = lines.find(({ text }: { text: string }) => /^(starts|resumes)/.test(text));
        return found && (await isDone()) ? String(found.text) : undefined;
      },
      120_000,
    );
    await node.server.inject({ method: 'DELETE', url: `/jobs/${id}`, headers });
    return line;
  };
  const kept = async () =>
    (await readdir(join(data, 'scratch'), { recursive: true })).filter((name) => name.startsWith('kept-'));
  // A file that is still being written is removed with the job.
  const hasCheckpoint = async () =>
    (await kept()).some((name) => name.includes('/') && !name.endsWith('.new'));

  assert.match(await beginning({}, hasCheckpoint), /^starts with epoch 1/);
  const before = await kept();
  assert.match(await beginning({ store: false }, async () => true), /^starts with epoch 1/);
  assert.deepEqual(
    (await kept()).filter((name) => before.includes(name)),
    before,
  );
  assert.match(await beginning({}, async () => true), /^resumes from epoch/);
});
