/** Scores of models by several nodes, compared with those of one. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { openNode } from '../../../src/node.js';
import type { ScoreResults, TrainResults } from '../../../src/training/index.js';
import { OPTIONS, resultsOf, Servers, startJob } from '../../jobs/servers.js';
import { atEnd } from '../../support/at-end.js';
import { noEtcd } from '../../support/etcd.js';
import { ingest } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { writeTestScene } from '../../support/scenes.js';

test('three nodes give the same scores as one node', { skip: noEtcd }, async (t) => {
  const servers = await Servers.start(t);
  const { folder } = servers;
  const [a, b, c] = servers.three;
  const single = await openNode({
    data: join(folder, 'alone'),
    memory: 256e6,
    cores: 1,
    allowFolders: [folder],
  });
  atEnd(t, () => single.close());
  // Far enough from each other to be in slots of several nodes.
  for (const [i, datetime] of ['2024-06-01T10:00:00Z', '2024-07-01T10:00:00Z'].entries()) {
    const href = await Promise.all(
      [0, 1, 2].map((place) =>
        writeTestScene(join(folder, `d${i}p${place}.tif`), {
          ...{
            width: 300,
            height: 300,
            seed: 1 + place + 10 * i,
            x: 500_000 + 60_000 * place,
            cloud: 10 * i,
          },
        }),
      ),
    );
    const scenes = { href, datetime, ...OPTIONS };
    await resultsOf(a, await startJob(a, 'ingest', scenes));
    assert.deepEqual((await ingest(single, scenes)).failed, []);
  }
  const training = {
    model: 'ndvi',
    mode: 'partitioned',
    epochs: 1,
    filter: { datetime: '../2024-06-02T00:00:00Z' },
  };
  const { models } = await runProcess<TrainResults>(single, 'train', training);
  const { id, geocode } = models[0]!;
  const own = { ...training, filter: { ...training.filter, geocode } };
  await resultsOf(a, await startJob(b, 'train', own));

  const scored = await resultsOf<ScoreResults>(b, await startJob(c, 'score', { model: id }));
  const alone = await runProcess<ScoreResults>(single, 'score', { model: id });
  assert.ok(scored.places.length >= 6 && scored.values > 500, JSON.stringify(scored));
  assert.ok(scored.questions.find(({ question }) => question === 'otherGround')!.interval);
  for (const member of ['tiles', 'values', 'trained', 'measures', 'pooled', 'questions', 'places'] as const)
    assert.deepEqual(scored[member], alone[member], member);
});
