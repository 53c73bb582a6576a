/** Training from models of other cells, with the command and over HTTP. */
import assert from 'node:assert/strict';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { SERIES_DATES, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import { toArray } from '../../../src/async/index.js';
import type { SimilarDocument } from '../../../src/client/index.js';
import { Storage, versionsOf } from '../../../src/storage/index.js';
import type { CardSummary, ModelCard, TextureResults, TrainResults } from '../../../src/training/index.js';
import { suiteContext } from '../../support/at-end.js';
import { tilewright } from '../../support/command.js';
import { onlyNightly } from '../../support/nightly.js';
import { testNode } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';

/** A data folder with cells of precision 5, six of them complete, and with fresh models. Tests use copies of it. */
let land: string;
/** The training of these models. The textures of the cells were unknown. */
let first: TrainResults;
/** Cells that the scene covers for the most part. */
const MOSTLY_COVERED = ['--min-coverage', '60'];
/** A second training process would load a second engine. */
const CORES = ['--cores', '1'];
const file = suiteContext();
before(async () => {
  const folder = await tempFolder(file);
  land = join(folder, 'data');
  const dates = SERIES_DATES.slice(2, 3);
  const [clear] = await writeSentinelLikeSeries(join(folder, 'scenes'), { dates });
  const flags = ['--collection', 's', '--precision', '5', '--scale', '0.0001', '--mask-band', '5'];
  const ingested = await tilewright('ingest', clear!.path, ...flags, ...CORES, '--data', land);
  assert.equal(ingested.code, 0, ingested.stderr);
  first = await train([...CORES, '--data', land], '--transfer', 'similar', ...MOSTLY_COVERED);
});

async function cellsIn(t: TestContext): Promise<{ data: string; target: string[] }> {
  const data = join(await tempFolder(t), 'data');
  await cp(land, data, { recursive: true });
  return { data, target: [...CORES, '--data', data] };
}

async function train(target: string[], ...flags: string[]): Promise<TrainResults> {
  const { code, stdout, stderr } = await tilewright(
    'train',
    'ndvi',
    '--epochs',
    '2',
    '--format',
    'json',
    ...flags,
    ...target,
  );
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

async function cardOf(data: string, { id, version }: { id: string; version: string }): Promise<ModelCard> {
  const storage = await Storage.open(data);
  try {
    const model = (await storage.models.get(id))!;
    assert.equal(model.version, version);
    const card: ModelCard = JSON.parse(await readFile(storage.models.path(model, 'card.json'), 'utf8'));
    assert.deepEqual((model.card as CardSummary).transfer, card.transfer);
    return card;
  } finally {
    await storage.close();
  }
}

type Trained = TrainResults['models'][number];

test('a cell starts from the most similar usable cell of its cluster, and its card records it', {
  timeout: 300_000,
}, async (t) => {
  const { data, target } = await cellsIn(t);
  const mostly = [...MOSTLY_COVERED, ...target];
  const all = first.models.map(({ geocode }) => geocode);
  assert.ok(all.length >= 5);
  for (const { parent, transfer } of first.models) {
    assert.equal(parent, undefined);
    assert.match(transfer!.fresh!, /the texture is unknown; compute it with "tilewright texture"/);
  }
  assert.equal((await tilewright('texture', '--clusters', '2', ...mostly)).code, 0);
  const text = await tilewright('train', 'ndvi', '--epochs', '2', '--transfer', 'similar', ...mostly);
  const printed = new Map(
    [...text.stdout.matchAll(/^(?!all places)(\w+) +(\w+) +\d/gm)].map(([, own, from]) => [own, from]),
  );
  assert.match(text.stdout, /^place +from /);
  assert.deepEqual([...printed.keys()], all, text.stdout + text.stderr);

  const node = await testNode(t, data, { cores: 1 });
  const some = all.slice(0, 3);
  const random = await runProcess<TrainResults>(node, 'train', {
    ...{ model: 'ndvi', epochs: 2, transfer: 'random' },
    filter: { query: { geocode: { in: some } } },
  });
  assert.deepEqual(
    random.models.map(({ geocode }) => geocode),
    some,
  );
  const learned = first.models.filter(({ metrics, baseline }) => metrics.validation.mse < baseline.mean.mse);
  let nearerElsewhere = 0;
  for (const { id, geocode } of first.models) {
    const answer = await node.server.inject({
      ...{ method: 'POST', url: '/similar', payload: { collection: 's', geocode, limit: 100 } },
    });
    const { place, similar }: SimilarDocument = answer.json();
    const candidates = similar.filter((one) => learned.some((model) => model.geocode === one.geocode));
    const nearest = candidates.find(({ cluster }) => cluster === place.cluster)!;
    if (nearest !== candidates[0]) nearerElsewhere++;
    assert.equal(printed.get(geocode), nearest.geocode);
    const versions = versionsOf((await node.storage.models.get(id))!);
    const child = versions.find(
      ({ card }) => (card as CardSummary).transfer?.policy === 'similar' && (card as CardSummary).parent,
    )!;
    const { parent, transfer } = child.card as CardSummary;
    const source = first.models.find((model) => model.geocode === nearest.geocode)!;
    assert.deepEqual(
      [parent, transfer!.version, transfer!.distance],
      [source.id, source.version, nearest.distance],
    );

    const drawn = random.models.find((model) => model.id === id);
    if (!drawn) continue;
    const other = similar.find((one) => drawn.parent === `ndvi_s_g${one.geocode}`)!;
    assert.notEqual(other.cluster, place.cluster);
    assert.equal(drawn.transfer!.distance, other.distance);
  }
  assert.ok(nearerElsewhere > 0, 'of no place the most similar one is in another cluster');
  const [{ parent, transfer, id, version }] = random.models as [Trained];
  const item = (await node.server.inject(`/models/${id}/versions/${version}/item`)).json();
  assert.equal(item.properties['mlm:pretrained_source'], parent);
  assert.ok(
    item.links.some(
      ({ rel, href }: { rel: string; href: string }) =>
        rel === 'derived_from' && href.endsWith(`/models/${parent}/versions/${transfer!.version}/item`),
    ),
  );
});

test('a cell that probes starts from the best model, and its card records it', async (t) => {
  const { data, target } = await cellsIn(t);
  assert.equal((await tilewright('texture', '--clusters', '2', ...MOSTLY_COVERED, ...target)).code, 0);
  const [{ geocode }] = first.models as [Trained];
  const flags = ['--geocode', geocode, '--transfer', 'probe', '--fine-tuning', 'gradual'];
  const { models } = await train(target, ...flags);
  const [model] = models as [Trained];
  const card = await cardOf(data, model);
  assert.equal(card.parent, model.parent ?? null);
  assert.deepEqual(card.transfer, model.transfer);
  const { policy, fineTuning, probed, version, distance } = card.transfer!;
  assert.deepEqual([policy, fineTuning], ['probe', 'gradual']);
  assert.ok(probed!.length >= 4 && probed![0]!.id === undefined);
  const best = probed!.reduce((a, b) => (b.mse < a.mse ? b : a));
  assert.equal(model.parent, best.id);
  const versionOf = (id?: string) => first.models.find((one) => one.id === id)?.version;
  assert.deepEqual([version, distance !== undefined], [versionOf(best.id), best.id !== undefined]);
});

test('with a curriculum the most typical cell of each cluster trains first, and the others start from it', {
  timeout: 300_000,
}, async (t) => {
  const { data, target } = await cellsIn(t);
  const whole = [...target, '--min-coverage', '99'];
  const textures = await tilewright('texture', '--clusters', '2', '--format', 'json', ...whole);
  const { clusters } = (JSON.parse(textures.stdout) as TextureResults).collections[0]!;
  const seeds = clusters.map(({ places, middle }) => ({ places, id: `ndvi_s_g${middle}` }));
  const seedOf = (geocode: string) => seeds.find(({ places }) => places.includes(geocode))!.id;
  const all = clusters.flatMap(({ places }) => places).sort();
  const versionOf = (models: Trained[], id?: string) => models.find((model) => model.id === id)?.version;

  const similar = await train(
    whole,
    '--transfer',
    'similar',
    '--representatives-first',
    '--mode',
    'contained',
  );
  assert.deepEqual(
    similar.models.map(({ geocode }) => geocode),
    all,
  );
  for (const { id, geocode, parent, transfer } of similar.models)
    if (id === seedOf(geocode)) assert.equal(transfer!.fresh, 'chosen as representative of a cluster');
    else assert.equal(parent, seedOf(geocode));
  const child = similar.models.find(({ parent }) => parent !== undefined)!;
  const { parent, transfer } = await cardOf(data, child);
  assert.deepEqual([parent, transfer!.version], [child.parent, versionOf(similar.models, child.parent)]);

  // The job probes only its own models, not the others that exist by now.
  const { models } = await train(whole, '--transfer', 'probe', '--representatives-first');
  assert.deepEqual(
    models.map(({ geocode }) => geocode),
    all,
  );
  const ids = [undefined, ...seeds.map(({ id }) => id)];
  for (const { id, geocode, parent, transfer } of models) {
    const { fresh, probed, version } = transfer!;
    if (id === seedOf(geocode)) {
      assert.deepEqual([fresh, probed], ['chosen as representative of a cluster', undefined]);
      continue;
    }
    assert.deepEqual(new Set(probed!.map(({ id }) => id)), new Set(ids));
    assert.equal(parent, probed!.reduce((a, b) => (b.mse < a.mse ? b : a)).id);
    assert.equal(version, versionOf(models, parent));
  }
  assert.ok(models.some(({ parent }) => parent !== undefined));
});

test('if the seed of a cluster cannot be trained, the next most typical cell is the seed', {
  skip: onlyNightly,
}, async (t) => {
  const { data, target } = await cellsIn(t);
  const whole = [...target, '--min-coverage', '99'];
  const textures = await tilewright('texture', '--clusters', '1', '--format', 'json', ...whole);
  const { places, middle } = (JSON.parse(textures.stdout) as TextureResults).collections[0]!.clusters[0]!;
  const storage = await Storage.open(data);
  for (const tile of await toArray(storage.catalogue.tiles.values()))
    if (tile.geocode === middle)
      for (const { name } of tile.groups) await writeFile(storage.tileImage(tile, name).path, 'damaged');
  await storage.close();
  const flags = ['--epochs', '2', '--transfer', 'similar', '--representatives-first', '--format', 'json'];
  const { stdout } = await tilewright('train', 'ndvi', ...flags, ...whole);
  const { models, failed } = JSON.parse(stdout) as TrainResults;
  assert.deepEqual(
    failed.map(({ geocode }) => geocode),
    [middle],
  );
  const firsts = models.filter(({ transfer }) => transfer!.fresh === 'chosen as representative of a cluster');
  assert.equal(firsts.length, 1);
  assert.equal(models.length, places.length - 1);
  for (const { id, parent } of models) if (id !== firsts[0]!.id) assert.equal(parent, firsts[0]!.id);
});

test('parents with damaged files are skipped; if all are damaged, the cell starts fresh', async (t) => {
  const { data, target } = await cellsIn(t);
  assert.equal((await tilewright('texture', '--clusters', '1', ...MOSTLY_COVERED, ...target)).code, 0);
  const [{ geocode }] = first.models as [Trained];
  const damage = async (ids: string[]) => {
    const storage = await Storage.open(data);
    for (const id of ids) {
      const model = (await storage.models.get(id))!;
      await writeFile(storage.models.path(model, 'weights.bin'), 'damaged');
    }
    await storage.close();
  };
  const parents: string[] = [];
  const trainAgain = async () => {
    const again = await train(target, '--transfer', 'similar', '--geocode', geocode);
    const [{ parent, transfer }] = again.models as [Trained];
    const refused = transfer!.refused?.map(({ id }) => id) ?? [];
    assert.deepEqual(refused.slice(0, parents.length), parents);
    return { parent, refused, fresh: transfer!.fresh };
  };
  for (let i = 0; i < 2; i++) {
    const { parent, refused } = await trainAgain();
    assert.equal(refused.length, i);
    parents.push(parent!);
    await damage([parent!]);
  }
  await damage(first.models.flatMap((model) => (model.geocode === geocode ? [] : [model.id])));
  const { parent, refused, fresh } = await trainAgain();
  assert.deepEqual([parent, refused.length, new Set(refused).size], [undefined, 4, 4]);
  assert.match(fresh!, /^ndvi_s_g\w+: .*weights\.bin/);
});

test('invalid combinations of options are refused', async (t) => {
  const { data } = await cellsIn(t);
  const node = await testNode(t, data, { cores: 1 });
  const refused = async (inputs: object) => {
    const { code } = (
      await node.server.inject({
        ...{ method: 'POST', url: '/processes/train/execution' },
        headers: { authorization: `Bearer ${node.ownerSecret}` },
        payload: { inputs: { model: 'ndvi', ...inputs } },
      })
    ).json();
    return code;
  };
  for (const inputs of [
    { transfer: 'similar', mode: 'distributed' },
    { curriculum: true },
    { transfer: 'none', fineTuning: 'head' },
  ])
    assert.equal(await refused(inputs), 'TW_TRAIN_TRANSFER', JSON.stringify(inputs));
  assert.equal(await refused({ transfer: 'nearest' }), 'TW_API_BAD_REQUEST');
  for (const flags of [
    ['--representatives-first'],
    ['--fine-tuning', 'head', '--transfer', 'none'],
    ['--transfer', 'probe', '--mode', 'contained', '--here'],
    ['--transfer', 'probe', '--mode', 'distributed'],
  ]) {
    const { code, stderr } = await tilewright('train', 'ndvi', ...flags, '--data', data);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /--transfer/);
  }
});
