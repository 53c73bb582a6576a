/** A training job selects tiles by a filter, trains a model for each cell, and serves its files over HTTP. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { SERIES_DATES, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import { localQueries } from '../../../src/dht/index.js';
import { ENGINE_NAMES } from '../../../src/engines/load.js';
import type { JobContext } from '../../../src/jobs/index.js';
import { openNode, type TilewrightNode } from '../../../src/node.js';
import { TileFinder } from '../../../src/query/index.js';
import { TextureIndex, type TrainResults, trainProcess } from '../../../src/training/index.js';
import { type TrainInputs, trainingMode } from '../../../src/training/train-inputs.js';
import { atEnd } from '../../support/at-end.js';
import { ingest } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';

type Outcome = Omit<TrainResults, 'failed'>;

const train = (node: TilewrightNode, inputs: object) => runProcess<Outcome>(node, 'train', inputs);

function recorder(progress: JobContext['progress']): JobContext {
  const nothing = () => {};
  return {
    ...{ id: 'recorded', signal: new AbortController().signal, isMine: () => true, progress },
    ...{
      allGather: async (word) => [word],
      message: nothing,
      log: nothing,
      partial: nothing,
      file: async () => {},
    },
  };
}

test('a job trains the cells that match the filter, with the same result for the same seed', async (t) => {
  const folder = await tempFolder(t);
  let node = await openNode({ data: join(folder, 'data'), memory: 512e6, cores: 2 });
  atEnd(t, () => node.close());
  const options = { size: { width: 800, height: 700 }, dates: SERIES_DATES.slice(1, 3) };
  const series = await writeSentinelLikeSeries(join(folder, 'scenes'), options);
  for (const { path } of series) {
    const { failed } = await ingest(node, { href: path, collection: 's', scale: 0.0001, maskBand: 5 });
    assert.deepEqual(failed, []);
  }
  const filter = { collections: ['s'], maxCloud: 30, minCoverage: 60 };
  const partitioned = { model: 'ndvi', mode: 'partitioned', filter, epochs: 2, seed: 3 };
  const first = await train(node, partitioned);
  assert.ok((ENGINE_NAMES as readonly string[]).includes(first.engine), first.engine);
  assert.ok(first.models.length > 0, JSON.stringify(first));
  assert.ok(first.pooled && first.pooled.model.mse > 0);
  const again = await train(node, partitioned);
  assert.deepEqual(
    again.models.map(({ metrics }) => metrics),
    first.models.map(({ metrics }) => metrics),
  );

  const { models } = (await node.server.inject('/models')).json();
  assert.deepEqual(models.map((m: { id: string }) => m.id).sort(), first.models.map(({ id }) => id).sort());
  const { id } = models[0];
  const topology = (await node.server.inject(`/models/${id}/model.json`)).json();
  assert.equal(topology.format, 'layers-model');
  assert.ok((await node.server.inject(`/models/${id}/weights.bin`)).rawPayload.length > 1000);
  const card = (await node.server.inject(`/models/${id}/card.json`)).json();
  assert.equal(card.seed, 3);
  assert.ok(card.data.length > 0);
  assert.equal((await node.server.inject(`/models/${id}/..%2fcard.json`)).statusCode, 400);

  const together = await train(node, { model: 'ndvi', mode: 'distributed', filter, epochs: 2, seed: 3 });
  assert.equal(together.mode, 'distributed');
  const [all] = together.models;
  const { members, places } = all!.distributed!;
  assert.deepEqual(
    members.map(({ bytesSent, ratio }) => [bytesSent, ratio]),
    [[0, null]],
  );
  const geocodes = first.models.map(({ geocode }) => geocode);
  assert.deepEqual(
    places.map(({ geocode }) => geocode),
    geocodes,
  );
  assert.ok(geocodes.length > 1 && geocodes.every((geocode) => geocode.startsWith(all!.geocode)));
  const predicted = await runProcess<{ tiles: number }>(node, 'predict', { model: all!.id, filter });
  assert.ok(predicted.tiles >= geocodes.length, JSON.stringify(predicted));

  const shares: number[] = [];
  const only = { ...filter, geocode: geocodes[0]! };
  const recording = recorder((now) => now.share !== undefined && shares.push(now.share));
  await trainProcess({
    storage: node.storage,
    finder: new TileFinder(node.storage, localQueries(node.storage.index)),
    textures: new TextureIndex(node.storage),
    cores: 2,
  }).run({ model: 'ndvi', mode: 'partitioned', filter: only, epochs: 4 }, recording);
  assert.deepEqual(shares, [0.25, 0.5, 0.75, 1, 1], 'a place alone counts by its epochs');

  const none = await train(node, { model: 'ndvi', filter: { datetime: '1999-01-01T00:00:00Z' } });
  assert.equal(none.failed, 'TW_TRAIN_NOTHING');
  // The request is rejected before an engine is loaded, which takes seconds.
  const absent = await train(node, {
    model: 'ndvi',
    filter: { collections: ['absent'] },
    engine: 'tfjs-node-gpu',
  });
  assert.equal(absent.failed, 'TW_QUERY_NO_COLLECTION');
  assert.equal(
    (await train(node, { model: 'ndvi', filter, engine: 'tfjs-node-gpu' })).failed,
    'TW_TRAIN_ENGINE',
  );
  const wrong = await node.server.inject({
    method: 'POST',
    url: '/processes/train/execution',
    payload: { inputs: { model: 'weather' } },
  });
  assert.equal(wrong.statusCode, 400);

  await node.close();
  node = await openNode({ data: join(folder, 'data'), memory: 512e6, cores: 2 });
  assert.equal(
    (await node.server.inject('/models')).json().models.length,
    models.length + 1,
    'models outlive the node',
  );
});

test('without a mode, several places of one collection are trained as a region, and all else by place', async (t) => {
  const folder = await tempFolder(t);
  const node = await openNode({ data: join(folder, 'data'), memory: 512e6, cores: 2 });
  atEnd(t, () => node.close());
  const options = { size: { width: 800, height: 700 }, dates: SERIES_DATES.slice(1, 3) };
  const [scene] = await writeSentinelLikeSeries(join(folder, 'scenes'), options);
  for (const collection of ['a', 'b'])
    await ingest(node, { href: scene!.path, collection, scale: 0.0001, maskBand: 5 });
  const of = (collections: string[], more: object = {}) =>
    train(node, { ...{ model: 'ndvi', epochs: 1, store: false }, filter: { collections, ...more } });
  const region = await of(['a']);
  assert.equal(region.mode, 'regional');
  assert.ok(region.models.length > 1);
  const [{ geocode }] = region.models as [TrainResults['models'][number]];
  assert.equal((await of(['a'], { geocode })).mode, 'partitioned', 'one place');
  assert.equal((await of(['a', 'b'])).mode, 'partitioned', 'two collections');
  const modes = [
    [{ model: ['ndvi', 'ndmi'] }, 'partitioned'],
    [{ model: 'ndvi', transfer: 'similar' }, 'partitioned'],
    [{ model: 'cloud-removal' }, 'partitioned'],
    [{ model: 'ndmi' }, 'regional'],
    [{ model: 'cloud-removal', fresh: false }, 'regional'],
    [{ model: 'ndvi', mode: 'distributed' }, 'distributed'],
  ] as const;
  for (const [inputs, mode] of modes) assert.equal(trainingMode(inputs as TrainInputs), mode);
});
