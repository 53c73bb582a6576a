/** `train --mode regional --stale`: which version of a base the drifted places adapt, and places that cannot be read. */
import assert from 'node:assert/strict';
import { truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { localQueries } from '../../../src/dht/index.js';
import type { JobContext } from '../../../src/jobs/index.js';
import { TileFinder } from '../../../src/query/index.js';
import { newVersion, versionsOf } from '../../../src/storage/index.js';
import {
  type ModelCard,
  TextureIndex,
  type TrainResults,
  trainProcess,
} from '../../../src/training/index.js';
import { testNode, tilesOf } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';
import { CHANGED, ingestChangingLand, TRAINED_UNTIL } from './changing-land.js';

function jobOf(id: string): JobContext {
  const nothing = () => {};
  return {
    ...{ id, signal: new AbortController().signal, isMine: () => true, allGather: async (one) => [one] },
    ...{ progress: nothing, message: nothing, log: nothing, partial: nothing, file: async () => {} },
  };
}

test('the places of a stale training adapt one version of a base', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const { storage } = node;
  await ingestChangingLand(node, folder);
  const filter = { datetime: `../${TRAINED_UNTIL}` };
  await runProcess<TrainResults>(node, 'train', {
    model: 'ndvi',
    mode: 'partitioned',
    epochs: 2,
    history: 'none',
    filter,
  });
  const process = trainProcess({
    storage,
    finder: new TileFinder(storage, localQueries(storage.index)),
    textures: new TextureIndex(storage),
    cores: 2,
  });
  // A check of models with a history would read the old dates too.
  const inputs = {
    ...{ model: 'ndvi', mode: 'regional', epochs: 2 },
    ...{ fresh: false, stale: true, history: 'none' },
  };
  const train = (job: string) => process.run(inputs, jobOf(job)) as Promise<TrainResults>;

  const first = await train('interrupted');
  const [adapted] = first.models;
  assert.deepEqual([first.models.length, adapted!.geocode], [1, CHANGED]);
  const { id, version } = first.base!;
  await t.test('a job that runs again keeps the base that it has trained', async () => {
    const again = await train('interrupted');
    assert.deepEqual([again.base?.version, again.models[0]!.version], [version, adapted!.version]);
  });

  await t.test('a newer version of the same base that was trained on other places is not used', async () => {
    await storage.models.delete(adapted!.id, adapted!.version);
    const [base] = versionsOf((await storage.models.get(id))!);
    const files = Object.fromEntries(
      await Promise.all(
        base!.files.map(async ({ name }) => [name, await storage.models.readFile(base!, name)] as const),
      ),
    );
    const known = base!.card as ModelCard;
    const places = known.distributed!.places.map((place, i) => ({ ...place, geocode: `u300${i}` }));
    const card = { ...known, job: 'other', distributed: { ...known.distributed, places } };
    const newer = await storage.models.put({ ...base!, version: newVersion(), card }, files);
    assert.equal(versionsOf(newer).length, 2);
    const [model] = (await train('later')).models;
    assert.deepEqual(model!.adaptation!.base, { id, version });
    await storage.models.delete(model!.id, model!.version);
  });

  await t.test('a place with a damaged mask of an old date fails alone', async () => {
    const [oldest] = (await tilesOf(node))
      .filter(({ geocode }) => geocode === CHANGED)
      .sort((a, b) => a.start - b.start);
    await truncate(storage.tileImage(oldest!, 'mask').path, 100);
    const { models, failed } = await train('damaged');
    assert.deepEqual([models, failed.map(({ geocode }) => geocode)], [[], [CHANGED]]);
    assert.match(failed[0]!.code, /^TW_RASTER_/);
  });
});
