/** A run keeps the derived tiles that it would derive from the same versions of the same inputs. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { toArray } from '../../src/async/index.js';
import { LevelStore } from '../../src/coordination/level-store.js';
import { DerivePool, type DeriveResults, fillProcess, splitProcess } from '../../src/derive/index.js';
import { localQueries } from '../../src/dht/index.js';
import { restoreCoordination } from '../../src/dht/recovery.js';
import { SLOTS } from '../../src/dht/slots.js';
import { TileFinder } from '../../src/query/index.js';
import { Mask } from '../../src/raster/index.js';
import { Storage, type TileRecord } from '../../src/storage/index.js';
import { type RunningMember, startMember, until } from '../dht/cluster-members.js';
import { type SharedStores, sharedStores } from '../dht/shared-stores.js';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';
import { type GivenScene, randomly, runProcess, storeScene } from './tiles.js';

const CELL = '9q8yy';
const SIDE = 16;

/** A delivery of scene `s<number>`, determined by the seed. Six of its columns have no data, and up to four are cloud. */
function delivery(scene: number, seed: number): GivenScene {
  const random = randomly(1 + (scene * 10 + seed + 1) * 12_345_678);
  const [hole, cloud] = [Math.floor(random() * SIDE), Math.floor(random() * SIDE)];
  const isIn = (column: number, from: number, width: number) => (column - from + SIDE) % SIDE < width;
  const mask = Uint8Array.from({ length: SIDE * SIDE }, (_, i) =>
    isIn(i % SIDE, hole, 6) ? Mask.nodata : isIn(i % SIDE, cloud, 4) ? Mask.cloud : Mask.clear,
  );
  const pixels = Uint16Array.from(mask, (code) =>
    code === Mask.nodata ? 0 : 1 + Math.floor(random() * 999),
  );
  const groups = [{ width: SIDE, height: SIDE, bands: [{ name: 'red', pixels }] }];
  return { id: `s${scene}`, day: scene, tiles: [{ geocode: CELL, groups, mask }] };
}

function openWorkers(t: TestContext): DerivePool {
  const workers = new DerivePool(1);
  atEnd(t, () => workers.close());
  return workers;
}

async function single(t: TestContext): Promise<{ storage: Storage; workers: DerivePool }> {
  const workers = openWorkers(t);
  const storage = await Storage.open(await tempFolder(t), { reserve: 0 });
  atEnd(t, () => storage.close());
  return { storage, workers };
}

const contextOf = (storage: Storage, workers: DerivePool) => ({
  storage,
  finder: new TileFinder(storage, localQueries(storage.index)),
  workers,
});

const fill = (storage: Storage, workers: DerivePool) =>
  runProcess<DeriveResults>(storage, fillProcess(contextOf(storage, workers)), { dilate: 0 });
const split = (storage: Storage, workers: DerivePool, source = 'raw') =>
  runProcess<DeriveResults>(storage, splitProcess(contextOf(storage, workers)), {
    precision: CELL.length + 1,
    filter: { source },
  });

const countsOf = ({ tiles, unchanged, removed = 0, failures }: DeriveResults) => {
  assert.equal(failures, 0);
  return { tiles, unchanged, removed };
};

const derived = async (storage: Storage) =>
  (await toArray(storage.catalogue.tiles.values())).filter(({ source }) => source !== 'raw');

/** All fields of a tile except its name in the store and its time of creation. */
async function contentOf(storage: Storage, tile: TileRecord) {
  const { version: _v, createdAt: _c, inputsDigest: _d, ...record } = tile;
  await storage.ensureFiles(tile, tile.groups);
  const files = await Promise.all(
    tile.groups.map(async ({ name }) =>
      (await readFile(storage.tileImage(tile, name).path)).toString('base64'),
    ),
  );
  return { record, files };
}

/** A cluster of one node, whose etcd can be stopped. */
class SingleNodeCluster {
  private stores = 0;
  private constructor(
    private where: SharedStores,
    private node: RunningMember,
  ) {}

  static async open(t: TestContext): Promise<SingleNodeCluster> {
    const where = await sharedStores(t);
    const cluster = new SingleNodeCluster(where, await startMember(where, 'a'));
    await cluster.loaded();
    return cluster;
  }

  get storage(): Storage {
    return this.node.storage;
  }

  async restore(): Promise<void> {
    await this.node.stop();
    const folder = join(this.where.folder, `coordination-${++this.stores}`);
    const coordination = await LevelStore.open(folder);
    this.where.stops.push(() => coordination.close());
    await restoreCoordination(coordination, this.where.objects);
    this.where = { ...this.where, coordination };
    this.node = await startMember(this.where, 'a');
    await this.loaded();
  }

  private async loaded(): Promise<void> {
    await until('all is loaded', () => this.node.cluster.replica.slots.length === SLOTS);
  }
}

type Step =
  | { kind: 'deliver'; scene: number; seed: number }
  /** Delivers a scene twice; tiles are derived from the first delivery during the second. */
  | { kind: 'derive meanwhile'; scene: number; seeds: [number, number] }
  | { kind: 'delete'; scene: number }
  | { kind: 'delete derived'; nth: number }
  | { kind: 'restore' };

const scene = fc.integer({ min: 0, max: 2 });
const seed = fc.integer({ min: 0, max: 3 });
const stepOf = <K extends Step['kind'], R extends object>(
  kind: K,
  rest: { [F in keyof R]: fc.Arbitrary<R[F]> },
) => fc.record({ kind: fc.constant(kind), ...rest });
const step = fc.oneof(
  { weight: 3, arbitrary: stepOf('deliver', { scene, seed }) },
  { weight: 3, arbitrary: stepOf('derive meanwhile', { scene, seeds: fc.tuple(seed, seed) }) },
  { weight: 1, arbitrary: stepOf('delete', { scene }) },
  { weight: 1, arbitrary: stepOf('delete derived', { nth: fc.nat({ max: 50 }) }) },
  { weight: 2, arbitrary: stepOf('restore', {}) },
) as fc.Arbitrary<Step>;

test('after any deliveries, deletions and restorations, a run leaves every tile up to date', async (t) => {
  const workers = openWorkers(t);
  const cluster = await SingleNodeCluster.open(t);
  const folder = await tempFolder(t);
  let run = 0;
  /** Seeds of the deliveries that are in the store, by scene. */
  const delivered = new Map<number, number>();

  const derive = async (storage: Storage) => [
    await fill(storage, workers),
    await split(storage, workers),
    await split(storage, workers, 'filled'),
  ];
  const check = async () => {
    const found = await derive(cluster.storage);
    const scratch = await Storage.open(join(folder, `${run++}`), { reserve: 0 });
    try {
      for (const [number, seed] of delivered) await storeScene(scratch, delivery(number, seed));
      const expected = (await derive(scratch)).map(countsOf);
      for (const n of [0, 1]) {
        const { tiles, unchanged } = countsOf(found[n]!);
        assert.equal(tiles + unchanged, expected[n]!.tiles);
      }
      const ids = new Set<string>();
      for (const tile of await derived(scratch)) {
        const own = await cluster.storage.catalogue.tiles.get(tile.id);
        assert.ok(own, tile.id);
        assert.deepEqual(await contentOf(cluster.storage, own), await contentOf(scratch, tile));
        ids.add(tile.id);
      }
      // Every tile of an existing scene follows from its current version.
      const parents = new Set([...delivered.keys()].map((number) => `test_s${number}_g${CELL}`));
      for (const { id, source, derivedFrom } of await derived(cluster.storage))
        if (source === 'split' && parents.has(derivedFrom[0]!)) assert.ok(ids.has(id), id);
    } finally {
      await scratch.close();
    }
    assert.ok((await derive(cluster.storage)).every((results) => countsOf(results).tiles === 0));
  };

  const take = async (one: Step) => {
    if (one.kind === 'deliver') {
      await storeScene(cluster.storage, delivery(one.scene, one.seed));
      delivered.set(one.scene, one.seed);
    } else if (one.kind === 'derive meanwhile') {
      const [first, second] = one.seeds;
      await storeScene(cluster.storage, delivery(one.scene, first));
      const deriveTiles = async () => void (await derive(cluster.storage));
      await storeScene(cluster.storage, delivery(one.scene, second), deriveTiles);
      delivered.set(one.scene, second);
    } else if (one.kind === 'delete') {
      if (delivered.delete(one.scene)) await cluster.storage.collections.deleteScene('test', `s${one.scene}`);
    } else if (one.kind === 'delete derived') {
      const tiles = await derived(cluster.storage);
      if (tiles.length > 0) await cluster.storage.collections.deleteTile(tiles[one.nth % tiles.length]!.id);
    } else await cluster.restore();
  };

  const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 4 }), async (steps) => {
    for (const one of steps) await take(one);
    await check();
  });
  await fc.assert(property, { seed: 7, numRuns: 8, endOnFailure: true });
});

test('a delivery that begins before and ends after a derivation makes the tile out of date', async (t) => {
  const { storage, workers } = await single(t);
  await storeScene(storage, delivery(0, 1));
  await storeScene(storage, delivery(0, 2), async () => {
    assert.ok(countsOf(await split(storage, workers)).tiles > 0);
  });
  const [raw] = await toArray(storage.catalogue.tiles.values());
  const old = await derived(storage);
  assert.ok(
    old.every(({ version }) => raw!.version < version),
    'each has a later version than the input that it was not made of',
  );
  assert.equal(countsOf(await split(storage, workers)).unchanged, 0);
  assert.deepEqual(countsOf(await split(storage, workers)).tiles, 0);
});

test('a delivery of the same content is a new version, and gives the same tiles', async (t) => {
  const { storage, workers } = await single(t);
  await storeScene(storage, delivery(0, 1));
  const first = countsOf(await split(storage, workers));
  const content = async () => Promise.all((await derived(storage)).map((tile) => contentOf(storage, tile)));
  const before = await content();
  await storeScene(storage, delivery(0, 1));
  assert.deepEqual(countsOf(await split(storage, workers)), { ...first, unchanged: 0 });
  assert.deepEqual(await content(), before);
});

test('deleting an input derives a different tile from the others; restoring it derives the first tile again', async (t) => {
  const { storage, workers } = await single(t);
  for (const number of [0, 1, 2]) await storeScene(storage, delivery(number, 1));
  const [before] = await derivedBy(await fill(storage, workers), storage);
  await storage.collections.deleteScene('test', before!.derivedFrom.at(-1)!.split('_')[1]!);
  assert.deepEqual(countsOf(await fill(storage, workers)), { tiles: 1, unchanged: 0, removed: 0 });
  assert.deepEqual(countsOf(await fill(storage, workers)), { tiles: 0, unchanged: 1, removed: 0 });
  const { id } = before!;
  // A tile whose input was deleted stays until it is deleted itself, but the next command does not reuse it.
  assert.deepEqual(await storage.catalogue.tiles.get(id), before);
  for (const number of [0, 1, 2])
    if (!(await storage.getScene('test', `s${number}`))) await storeScene(storage, delivery(number, 1));
  assert.deepEqual(countsOf(await fill(storage, workers)), { tiles: 1, unchanged: 0, removed: 0 });
  const after = await storage.catalogue.tiles.get(id);
  assert.notEqual(after!.inputsDigest, before!.inputsDigest);
  assert.deepEqual(await contentOf(storage, after!), await contentOf(storage, before!));
});

async function derivedBy({ tiles }: DeriveResults, storage: Storage): Promise<TileRecord[]> {
  const made = await derived(storage);
  assert.deepEqual([made.length, tiles], [1, 1]);
  return made;
}

test('a tile is deleted if the next version of its input has no data there', async (t) => {
  const { storage, workers } = await single(t);
  const [half] = delivery(0, 1).tiles;
  const entire = { ...half!, mask: new Uint8Array(SIDE * SIDE).fill(Mask.clear) };
  const pixels = Uint16Array.from(entire.mask, (_, i) => 1 + i);
  entire.groups = [{ ...entire.groups[0]!, bands: [{ name: 'red', pixels }] }];
  await storeScene(storage, { id: 's0', day: 0, tiles: [entire] });
  const all = countsOf(await split(storage, workers));
  await storeScene(storage, delivery(0, 1));
  const left = countsOf(await split(storage, workers));
  assert.ok(left.tiles > 0 && left.removed > 0);
  assert.deepEqual(left, { tiles: left.tiles, unchanged: 0, removed: all.tiles - left.tiles });
  assert.equal((await derived(storage)).length, left.tiles);
  assert.deepEqual(countsOf(await split(storage, workers)), {
    tiles: 0,
    unchanged: left.tiles,
    removed: 0,
  });
});

test('tiles of older program versions, which did not record their inputs, are derived again once', async (t) => {
  const { storage, workers } = await single(t);
  await storeScene(storage, delivery(0, 1));
  const { tiles } = countsOf(await split(storage, workers));
  const { catalogue } = storage;
  const old = (await derived(storage)).map(({ inputsDigest: _, ...record }) => record);
  await catalogue.write(old.map((record) => catalogue.tiles.set(record.id, record)));
  assert.deepEqual(countsOf(await split(storage, workers)), { tiles, unchanged: 0, removed: 0 });
  assert.deepEqual(countsOf(await split(storage, workers)), { tiles: 0, unchanged: tiles, removed: 0 });
});
