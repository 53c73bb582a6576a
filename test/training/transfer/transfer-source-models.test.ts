/** Compares the source models that each policy chooses with a scan of all cells. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Storage, type TextureRecord, type TileRecord, versionNamed } from '../../../src/storage/index.js';
import { TextureIndex } from '../../../src/training/index.js';
import {
  availableSourceModels,
  type SourceModel,
  type SourceModelFinder,
  sourceModelFinder,
  transferProvenance,
} from '../../../src/training/transfer.js';
import { randomStream } from '../../../src/utils/random.js';
import { atEnd } from '../../support/at-end.js';
import { damageRecords } from '../../support/damage.js';
import { putModel } from '../../support/models.js';
import { tempFolder } from '../../support/temp.js';
import { putTextures } from '../../support/textures.js';

const CENTRES = [
  [-1, 0, 0],
  [1, 0, 0],
  [0, 2, 0],
];

const ALPHABET = '0123456789bcdefghjkmnpqrstuvwxyz';

const distance = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Math.hypot(...Array.from(a, (x, i) => x - b[i]!));
const nearestOf = <T>(items: T[], of: (item: T) => number): T | undefined =>
  items.toSorted((a, b) => of(a) - of(b))[0];

const tileIn = (geocode: string) =>
  ({ collection: 'c', grid: 'geohash', geocode, id: 't', version: 'v', start: 0, end: 0 }) as TileRecord;

test('no cell starts from a model whose record is damaged, and a warning reports it', async (t) => {
  const dir = await tempFolder(t);
  const before = await Storage.open(dir);
  const tiles = ['u200', 'u201'].map(tileIn);
  for (const tile of tiles) await putModel(before, [tile], { mse: 0.01, mean: 0.015 });
  await before.close();
  await damageRecords(dir, '!models!ndvi_c_gu200');

  const storage = await Storage.open(dir);
  atEnd(t, () => storage.close());
  const warnings: string[] = [];
  const job = { id: 'job 2', log: (_: string, text: string) => warnings.push(text) };
  const models = await availableSourceModels(storage, ['ndvi'], job);
  assert.deepEqual(
    models.map(({ geocode }) => geocode),
    ['u201'],
  );
  assert.match(warnings.join(), /^a model whose record is damaged is not used: .*ndvi_c_gu200/);
});

test('no cell starts from a model of an older version, or of a cell of another size', async (t) => {
  const storage = await Storage.open(await tempFolder(t));
  atEnd(t, () => storage.close());
  const warnings: string[] = [];
  const log = (_: string, text: string) => warnings.push(text);
  for (const [geocode, isHeldOut] of [
    ['u200', false],
    ['u201', true],
    ['u2020', true],
  ] as const)
    await putModel(storage, [tileIn('u200')], { geocode, mse: 0.01, mean: 0.02, isHeldOut });
  const models = await availableSourceModels(storage, ['ndvi'], { id: 'another job', log });
  assert.deepEqual(models.map(({ geocode }) => geocode).sort(), ['u201', 'u2020']);
  assert.match(warnings.join(), /^1 model of an older version cannot be used at other places/);

  const about = { title: 'c', grid: 'geohash', precision: 4, license: 'various', createdAt: 0 } as const;
  await storage.catalogue.write([storage.catalogue.collections.set('c', { id: 'c', ...about })]);
  const textureOf = (geocode: string, value: number): TextureRecord => ({
    ...{ collection: 'c', grid: 'geohash', geocode, tile: `c_s_g${geocode}`, version: 'v', start: 0 },
    values: [value, 0, 0],
  });
  // The cell of another size is the most similar one.
  await putTextures(storage, [textureOf('u203', 0), textureOf('u201', 1), textureOf('u2020', 0.1)]);
  const find = sourceModelFinder(new TextureIndex(storage), models, 'probe', 1);
  const found = await find({ collection: 'c', geocode: 'u203' });
  assert.ok('parents' in found, JSON.stringify(found));
  assert.deepEqual(
    found.parents.map(({ model }) => model.geocode),
    ['u201'],
  );
});

test('no cell starts from a model whose ancestors know a date that its training holds out', async (t) => {
  const storage = await Storage.open(await tempFolder(t));
  atEnd(t, () => storage.close());
  const day = (geocode: string, start: number, end = start) => ({
    ...tileIn(geocode),
    ...{ start: start * 86_400_000, end: end * 86_400_000 },
  });
  const score = { mse: 0.01, mean: 0.02 };
  const plan = { policy: 'similar', fineTuning: 'all', finders: new Map() } as const;
  // Each starts from the model before it.
  let parent = await putModel(storage, [day('u200', 10, 14)], score);
  const models = [parent];
  for (const [geocode, start] of [
    ['u201', 20],
    ['u202', 30],
  ] as const) {
    const found = { parents: [{ model: parent, distance: 0.1 }] };
    const started = { parent: { id: parent.id, version: parent.version } };
    const provenance = transferProvenance(plan, { found, refused: [] }, started);
    const change = { ...score, parent: parent.id, transfer: provenance.transfer };
    parent = await putModel(storage, [day(geocode, start)], change);
    models.push(parent);
  }
  // The cards of ancestors are not needed.
  await storage.models.delete(models[0]!.id);
  const usable = async (days: string[]) => {
    const warnings: string[] = [];
    const job = { id: 'another job', log: (_: string, text: string) => warnings.push(text) };
    const sources = await availableSourceModels(storage, ['ndvi'], job, { heldOut: { days } });
    return [sources.map(({ geocode }) => geocode).sort(), warnings.length];
  };
  assert.deepEqual(await usable(['1970-01-11']), [[], 1]);
  assert.deepEqual(await usable(['1970-01-15']), [[], 1], 'the last day of a composite');
  assert.deepEqual(await usable(['1970-01-21']), [[], 1]);
  assert.deepEqual(await usable(['1970-01-31']), [['u201'], 1]);
  assert.deepEqual(await usable(['1970-03-01']), [['u201', 'u202'], 0]);
});

test('versions and parents are chosen by their errors on the selection patches, and not by those on the validation patches', async (t) => {
  const storage = await Storage.open(await tempFolder(t));
  atEnd(t, () => storage.close());
  const { next } = randomStream(17);
  const job = { id: 'another job', log: () => {} };
  for (let round = 0; round < 12; round++) {
    const geocode = `u2${ALPHABET[round]}0`;
    const errors = Array.from({ length: 4 }, () => 0.001 + 0.03 * next());
    const versions: string[] = [];
    // The validation errors are drawn apart, so they often favour another version, or another verdict on the mean.
    for (const selection of errors)
      versions.push(
        (await putModel(storage, [tileIn(geocode)], { selection, mean: 0.02, mse: 0.04 * next() })).version,
      );
    const least = Math.min(...errors);
    const best = versions[errors.indexOf(least)];
    const record = (await storage.models.get(`ndvi_c_g${geocode}`))!;
    assert.equal(versionNamed(record, 'best')!.version, best);
    const parent = (await availableSourceModels(storage, ['ndvi'], job)).find(
      (one) => one.geocode === geocode,
    );
    assert.equal(parent?.version, least < 0.02 ? best : undefined);
  }
  // Without selection patches the newest version counts, and no place starts from it.
  const known = { geocode: 'u2z0', mse: 0.001, mean: 0.02 };
  await putModel(storage, [tileIn('u2z0')], known);
  const { version } = await putModel(storage, [tileIn('u2z0')], { ...known, mse: 0.01, selection: null });
  assert.equal(versionNamed((await storage.models.get('ndvi_c_gu2z0'))!, 'best')!.version, version);
  const parents = await availableSourceModels(storage, ['ndvi'], job);
  assert.ok(!parents.some(({ geocode }) => geocode === 'u2z0'));
});

test('each policy matches a scan of all cells', async (t) => {
  const storage = await Storage.open(await tempFolder(t));
  atEnd(t, () => storage.close());
  const { next } = randomStream(3);
  const textures = Array.from({ length: 40 }, (_, i): TextureRecord => {
    const geocode = `u2${ALPHABET[i >> 5]}${ALPHABET[i & 31]}`;
    const values = [3 * next() - 1.5, 3 * next() - 0.5, next()];
    return {
      collection: 'c',
      grid: 'geohash',
      geocode,
      tile: `c_s_g${geocode}`,
      version: 'v',
      start: 0,
      values,
    };
  });
  const about = { title: 'c', grid: 'geohash', precision: 4, license: 'various', createdAt: 0 } as const;
  await storage.catalogue.write([storage.catalogue.collections.set('c', { id: 'c', ...about })]);
  await putTextures(storage, textures);
  const scaling = { means: [0, 0, 0], deviations: [1, 1, 1] };
  const clustering = {
    collection: 'c',
    scaling,
    centres: CENTRES,
    curve: [],
    seed: 1,
    places: 40,
    createdAt: 0,
  };
  await storage.textures.putClustering(clustering);
  const clusterOf = ({ values }: TextureRecord) =>
    CENTRES.indexOf(nearestOf(CENTRES, (centre) => distance(values, centre))!);
  const put = (geocode: string, change: object) =>
    putModel(
      storage,
      [{ collection: 'c', grid: 'geohash', geocode, id: 't', version: 'v', start: 0, end: 0 } as TileRecord],
      change,
    );
  // Every second cell has a model; every tenth cell has a model without skill.
  for (const [i, { geocode }] of textures.entries())
    if (i % 2 === 0) await put(geocode, { mse: i % 10 === 0 ? 0.02 : 0.01, mean: 0.015, seed: i });
  await put(textures[1]!.geocode, { model: 'ndmi', mean: 1 });
  // The best version is used, not the latest one.
  const best = (await put(textures[3]!.geocode, { mse: 0.001, mean: 0.015 })).version;
  await put(textures[3]!.geocode, { mse: 0.014, mean: 0.015 });
  // A model of several cells is never used, regardless of its error.
  await put(textures[3]!.geocode, { mse: 0.0001, mean: 0.015, mode: 'distributed' });

  const warnings: string[] = [];
  const log = (_: string, text: string) => warnings.push(text);
  const models = await availableSourceModels(storage, ['ndvi'], { id: 'another job', log });
  const withModel = textures.filter((_, i) => (i % 2 === 0 && i % 10 !== 0) || i === 3);
  assert.deepEqual(
    models.map(({ geocode }) => geocode).sort(),
    withModel.map(({ geocode }) => geocode).sort(),
  );
  assert.equal(models.find(({ geocode }) => geocode === textures[3]!.geocode)!.version, best);
  assert.deepEqual(
    await availableSourceModels(storage, ['ndvi'], { id: 'job', log }),
    [],
    'models of the job itself',
  );
  assert.deepEqual(warnings, []);

  const index = new TextureIndex(storage);
  const found = async (finder: SourceModelFinder, { geocode }: TextureRecord): Promise<SourceModel[]> => {
    const answer = await finder({ collection: 'c', geocode });
    assert.ok('parents' in answer, JSON.stringify(answer));
    return answer.parents;
  };
  const geocodes = (parents: SourceModel[]) => parents.map(({ model }) => model.geocode);
  const similar = sourceModelFinder(index, models, 'similar', 1);
  const probe = sourceModelFinder(index, models, 'probe', 1);
  const random = [1, 1, 2].map((seed) => sourceModelFinder(index, models, 'random', seed));
  const drawn: string[][] = random.map(() => []);
  for (const own of textures) {
    const from = ({ values }: TextureRecord) => distance(values, own.values);
    const others = withModel.filter((one) => one !== own);
    const expected = others
      .filter((one) => clusterOf(one) === clusterOf(own))
      .toSorted((a, b) => from(a) - from(b))
      .slice(0, 4);
    const parents = await found(similar, own);
    assert.deepEqual(
      geocodes(parents),
      expected.map(({ geocode }) => geocode),
    );
    for (const [i, parent] of parents.entries())
      assert.ok(Math.abs(parent.distance - from(expected[i]!)) < 1e-6);

    const nearest = others.toSorted((a, b) => from(a) - from(b)).slice(0, 4);
    for (;;) {
      const far = others.filter((one) => !nearest.some((known) => clusterOf(known) === clusterOf(one)));
      if (far.length === 0) break;
      nearest.push(nearestOf(far, from)!);
    }
    assert.deepEqual(
      geocodes(await found(probe, own)),
      nearest.map(({ geocode }) => geocode),
    );
    for (const [i, finder] of random.entries()) {
      const [one] = await found(finder, own);
      const texture = textures.find(({ geocode }) => geocode === one!.model.geocode)!;
      assert.notEqual(clusterOf(texture), clusterOf(own));
      drawn[i]!.push(texture.geocode);
    }
  }
  assert.deepEqual(drawn[0], drawn[1], 'the same seed draws the same places');
  assert.notDeepEqual(drawn[0], drawn[2]);
  assert.ok(new Set(drawn[0]).size > 8);

  const none = async (finder: SourceModelFinder, geocode = textures[0]!.geocode, collection = 'c') => {
    const answer = await finder({ collection, geocode });
    assert.ok('none' in answer);
    return answer.none;
  };
  assert.match(await none(similar, 'zzzzz'), /the texture is unknown; compute it with "tilewright texture"/);
  assert.match(await none(similar, textures[0]!.geocode, 'other'), /the texture is unknown/);
  const apart = { ...textures[0]!, collection: 'd' };
  await storage.catalogue.write([storage.catalogue.collections.set('d', { id: 'd', ...about })]);
  await putTextures(storage, [apart]);
  for (const policy of ['similar', 'random'] as const)
    assert.match(
      await none(sourceModelFinder(index, models, policy, 1), apart.geocode, 'd'),
      /has no clusters; compute them with "tilewright texture"/,
    );
  assert.match(await none(sourceModelFinder(index, [], 'similar', 1)), /no other place of the cluster/);
  assert.match(await none(sourceModelFinder(index, [], 'random', 1)), /no place of another cluster/);
  assert.match(await none(sourceModelFinder(index, [], 'probe', 1)), /no other place/);
  await storage.textures.putClustering({ ...clustering, collection: 'd' });
  const alone = await none(sourceModelFinder(index, [], 'similar', 1), apart.geocode, 'd');
  assert.equal(alone, 'no other place is in the cluster');
});
