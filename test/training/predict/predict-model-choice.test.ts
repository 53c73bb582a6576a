/** Places without a model of their own are mapped by the model of a similar place, or of the region. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { SERIES_DATES, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import type { PredictResults, TrainResults } from '../../../src/training/index.js';
import { damageRecords } from '../../support/damage.js';
import { putModel } from '../../support/models.js';
import { ingest, testNode, tilesOf } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';

test('each tile is mapped by the model of its place, of a similar place, or of the region', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const options = { size: { width: 900, height: 800 }, dates: SERIES_DATES.slice(2, 3) };
  const [clear] = await writeSentinelLikeSeries(join(folder, 'scenes'), options);
  await ingest(node, { href: clear!.path, collection: 's', precision: 5, scale: 0.0001, maskBand: 5 });
  const raw = (await tilesOf(node)).length;
  const train = (inputs: object) =>
    runProcess<TrainResults>(node, 'train', { model: 'ndvi', mode: 'partitioned', epochs: 1, ...inputs });
  const predict = (inputs: object = {}) =>
    runProcess<PredictResults>(node, 'predict', { model: 'ndvi', filter: { collections: ['s'] }, ...inputs });
  const predicted = async () => (await tilesOf(node)).filter(({ source }) => source === 'predicted');
  const placesOf = async () => {
    const items = await Promise.all(
      (await predicted()).map(async ({ id }) =>
        (await node.server.inject(`/collections/s/items/${id}`)).json(),
      ),
    );
    return items.map(({ properties }) => `${properties.geocode} ${properties.model_place}`).sort();
  };

  // Only the base: no place has a model.
  const { models } = await train({ mode: 'distributed', filter: { collections: ['s'], minCoverage: 90 } });
  const [base] = models;
  const byBase = await predict();
  const served = byBase.tiles;
  assert.ok(served > 0 && served <= raw);
  assert.deepEqual(byBase.uses, { own: 0, cluster: 0, base: served });
  assert.equal(byBase.fallbacks!.length, served);
  assert.deepEqual(
    [...new Set(byBase.fallbacks!.map(({ model, use, reason }) => `${model} ${use}: ${reason}`))],
    [`${base!.id} base: it has no model ndvi`],
  );
  assert.ok((await placesOf()).every((place) => place.endsWith(' region')));
  const first = await predicted();
  assert.ok(first.every(({ model }) => model!.version === base!.version));

  // A model of one place: its tile and those around it are replaced, the others are kept.
  const { geocode } = base!.distributed!.places[0]!;
  const own = (await train({ filter: { collections: ['s'], geocode } })).models[0]!;
  const mixed = await predict();
  assert.deepEqual(
    [mixed.tiles + mixed.unchanged, mixed.uses],
    [served, { own: 1, cluster: 0, base: served - 1 }],
  );
  assert.ok(mixed.tiles >= 1 && mixed.tiles <= 9, String(mixed.tiles));
  assert.deepEqual(
    (await predicted()).map(({ id }) => id).sort(),
    first.map(({ id }) => id).sort(),
    'no second tile of the place',
  );
  assert.deepEqual(
    (await placesOf()).filter((place) => place.endsWith(' own')),
    [`${geocode} own`],
  );

  // With a cluster, its other places are mapped by that model.
  await runProcess(node, 'texture', { clusters: 1 });
  const shared = await predict();
  assert.equal(shared.uses!.own, 1);
  assert.ok(shared.uses!.cluster > 0);
  assert.deepEqual(
    [...new Set(shared.fallbacks!.filter(({ use }) => use === 'cluster').map(({ model }) => model))],
    [own.id],
  );
  assert.ok((await placesOf()).some((place) => place.endsWith(' other')));

  // A version that is worse than the mean on its validation patches maps no other place, however good its selection was.
  const scores = { selection: 0.001, mean: 0.02, mse: 0.03 };
  const poor = await putModel(
    node.storage,
    (await tilesOf(node)).filter((tile) => tile.geocode === geocode && tile.source === 'raw'),
    scores,
  );
  assert.deepEqual((await predict()).uses, { own: 1, cluster: 0, base: served - 1 });
  await node.storage.models.delete(own.id, poor.version);

  const only = await predict({ onlyOwn: true });
  // Its tile is made again, because no model of a neighbour is blended with its own.
  assert.deepEqual([only.tiles, only.uses], [1, { own: 1, cluster: 0, base: 0 }]);
  assert.deepEqual(only.fallbacks, []);
  assert.equal(only.skipped['their places have no model ndvi'], raw - 1);

  // A version name means versions of the model of each place.
  const named = await predict({ version: own.version });
  assert.deepEqual([named.unchanged, named.uses!.own], [1, 1]);

  // A damaged record says nothing about the tiles that its model has made.
  const before = await placesOf();
  await node.close();
  await damageRecords(join(folder, 'data'), `!models!${own.id}`);
  const again = await testNode(t, join(folder, 'data'));
  const versions = new Set((await tilesOf(again)).map(({ version }) => version));
  const damaged = await runProcess<PredictResults>(again, 'predict', {
    model: 'ndvi',
    filter: { collections: ['s'] },
  });
  assert.equal(damaged.uses!.own, 0);
  assert.equal(
    damaged.skipped['the records of their models are damaged; "tilewright models" lists these'],
    1,
  );
  // The tiles that other models map instead say which model was not considered.
  const warned = (damaged as { warnings?: string[] }).warnings ?? [];
  const leftOut = warned.filter((text) => text.startsWith('a model whose record is damaged is not used'));
  assert.equal(leftOut.length, 1, warned.join('; '));
  const remade = (await tilesOf(again)).filter(({ version }) => !versions.has(version));
  assert.equal(remade.length, damaged.tiles);
  assert.ok(remade.length > 0);
  for (const { warnings } of remade) assert.ok(warnings?.includes(leftOut[0]!), warnings?.join('; '));
  const kept = (await tilesOf(again)).filter(
    ({ source, model }) => source === 'predicted' && model!.id === own.id,
  );
  assert.ok(before.includes(`${geocode} own`));
  assert.deepEqual(kept.filter((tile) => tile.geocode === geocode).length, 1, 'its tile is kept');
});
