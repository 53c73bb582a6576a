/** The process `check` on generated places, one of which changes. */
import assert from 'node:assert/strict';
import { rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { JobContext } from '../../../src/jobs/index.js';
import type { TilewrightNode } from '../../../src/node.js';
import type { ModelVersionRecord } from '../../../src/storage/index.js';
import { planCheck, trainedUntil } from '../../../src/training/freshness/measurement.js';
import {
  type CheckResults,
  checkProcess,
  type ModelCard,
  type TrainResults,
} from '../../../src/training/index.js';
import { putModel } from '../../support/models.js';
import { testNode, tilesOf } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';
import { CHANGED, FIRST_CHANGED, ingestChangingLand, SAME, TRAINED_UNTIL } from './changing-land.js';

async function check(node: TilewrightNode, inputs: object = {}) {
  const { seconds, ...results } = await runProcess<CheckResults & { seconds?: number }>(node, 'check', {
    model: 'ndvi',
    ...inputs,
  });
  assert.ok(seconds! >= 0);
  const of = (geocode: string) => results.places.find((place) => place.geocode === geocode)!;
  return { results, changed: of(CHANGED), same: of(SAME) };
}

test('check finds the place that has changed, and stores nothing', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  await ingestChangingLand(node, folder);
  const until = { datetime: `../${TRAINED_UNTIL}` };
  const training = { model: 'ndvi', mode: 'partitioned', epochs: 8, filter: until };
  const { models } = await runProcess<TrainResults>(node, 'train', training);
  assert.equal(models.length, 2);

  await t.test('the card has the errors of its dates', async () => {
    const card: ModelCard = (await node.server.inject(`/models/${models[0]!.id}/card.json`)).json();
    const dates = card.data.map(({ datetime }) => Date.parse(datetime));
    for (const ground of [undefined, true]) {
      const errors = card.dateErrors!.filter(({ trained }) => trained === ground);
      assert.ok(errors.length >= 6);
      for (const { datetime, error, patches } of errors) {
        assert.ok(dates.includes(Date.parse(datetime)));
        assert.ok(error > 0 && error < 0.1 && patches >= (ground ? 24 : 8) && patches <= 64);
      }
    }
  });

  await t.test('without a newer date, nothing is known', async () => {
    const { results, changed } = await check(node, { filter: until });
    assert.deepEqual([results.unknown, results.fresh, results.drifted], [2, 0, 0]);
    assert.equal(changed.reason, 'no date is newer than the training');
  });

  await t.test('the changed place has drifted since its first clear date', async () => {
    const before = [await tilesOf(node), await versions(node)];
    const { results, changed, same } = await check(node);
    assert.deepEqual([results.drifted, results.fresh, results.unknown, results.without], [1, 1, 0, 0]);
    assert.deepEqual([changed.status, same.status], ['drifted', 'fresh']);
    assert.equal(changed.firstDrifted, FIRST_CHANGED);
    assert.ok(changed.ratio! > 3 && changed.error! > changed.promised! && changed.dates >= 3);
    assert.equal(results.places[0]!.geocode, CHANGED);
    assert.deepEqual((await check(node)).results, results);
    assert.deepEqual([await tilesOf(node), await versions(node)], before);
    // Before the change it had not.
    const early = await check(node, { filter: { datetime: '../2023-04-01T00:00:00Z' } });
    assert.deepEqual([early.changed.status, early.changed.dates], ['fresh', 1]);
  });

  await t.test('a job that is stopped ends with its reason', async () => {
    const { run } = checkProcess({ storage: node.storage, cores: 1 });
    const stopped = {
      ...{ id: 'job', signal: AbortSignal.abort(new Error('stopped')), isMine: () => true },
      ...{ progress() {}, message() {}, log() {}, partial() {} },
    } as unknown as JobContext;
    await assert.rejects(run({ model: 'ndvi' }, stopped), /stopped/);
  });

  await t.test('a place whose new dates cannot be read is unknown', async () => {
    const tiles = await tilesOf(node);
    const last = tiles.filter(({ geocode }) => geocode === SAME).sort((a, b) => b.start - a.start)[0]!;
    await rm(node.storage.tileImage(last, last.groups[0]!.name).path);
    const { changed, same } = await check(node);
    assert.deepEqual([changed.status, same.status], ['drifted', 'unknown']);
    assert.match(same.reason!, /\[TW_/);
    await node.storage.getTiles([last.id]);
    await node.server.inject({
      ...{ method: 'DELETE', url: `/collections/s/items/${last.id}` },
      headers: { authorization: `Bearer ${node.ownerSecret}` },
    });
  });

  await t.test('a damaged model, and one of an older version, are unknown with the reason', async () => {
    const record = (await node.storage.models.get(models.find(({ geocode }) => geocode === CHANGED)!.id))!;
    await truncate(node.storage.models.path(record, 'weights.bin'), 100);
    const same = (await tilesOf(node)).filter(
      ({ geocode, start }) => geocode === SAME && start < Date.parse(TRAINED_UNTIL),
    );
    await putModel(node.storage, same);
    const { results, ...of } = await check(node);
    assert.equal(results.unknown, 2);
    assert.match(of.changed.reason!, /weights\.bin.*100 bytes.*TW_STORAGE_MODEL_DAMAGED/);
    assert.match(of.same.reason!, /older version of tilewright trained the model/);
  });

  await t.test('other kinds of models have no place', async () => {
    const { results } = await check(node, { model: 'ndmi' });
    assert.deepEqual([results.without, results.places], [2, []]);
  });
});

async function versions(node: TilewrightNode): Promise<string[]> {
  const found = [];
  for await (const { record } of node.storage.models.scanAll())
    found.push(`${record!.id} ${record!.version}`);
  return found;
}

const at = (day: string) => ({ id: day, version: '1', datetime: `${day}T10:00:00.000Z` });

test('dates after the training itself do not hide later ones, unless the clock of the server was wrong', () => {
  const of = (createdAt: string, ...days: string[]) =>
    trainedUntil({ createdAt: `${createdAt}T00:00:00.000Z`, data: days.map(at) });
  assert.equal(of('2023-05-01', '2023-01-01', '2023-04-01'), Date.parse(at('2023-04-01').datetime));
  assert.equal(of('2023-05-01', '2023-01-01', '2099-01-01'), Date.parse(at('2023-01-01').datetime));
  assert.equal(of('1970-01-01', '2023-01-01', '2023-02-01'), Date.parse(at('2023-02-01').datetime));
  assert.equal(of('2023-05-01'), -Infinity);
});

test('new dates in the future are not judged', () => {
  const model = {
    model: 'ndvi',
    card: {
      ...{ data: [at('2023-01-01')], createdAt: '2023-02-01T00:00:00.000Z', dateErrors: [] },
      holdOut: { side: 'eastern', gap: 16, window: { column: 64, row: 16, width: 32, height: 64 } },
    },
  } as unknown as ModelVersionRecord;
  const now = Date.parse('2023-06-01');
  const plan = (...days: string[]) =>
    planCheck(
      { tileImage: () => ({ path: '', start: 0, bytes: 0 }) },
      model,
      {
        ...{ collection: 's', grid: 'geohash', geocode: 'u' },
        tiles: days.map((day) => ({ ...at(day), start: Date.parse(day), groups: [] }) as never),
      },
      now,
    );
  assert.match((plan('2099-01-01') as { unknown: string }).unknown, /in the future/);
  assert.match((plan('2022-01-01') as { unknown: string }).unknown, /no date is newer/);
  // The bands of these tiles are unknown, so the dates are recognised as new and past.
  assert.match(
    (plan('2023-05-01', '2099-01-01') as { unknown: string }).unknown,
    /none of the new dates has/,
  );
});
