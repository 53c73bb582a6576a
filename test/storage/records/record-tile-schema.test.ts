import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { Level } from 'level';
import { toArray } from '../../../src/async/index.js';
import { Catalogue, decodeRecord, encodeRecord } from '../../../src/storage/catalogue.js';
import { type GroupRecord, Storage, schemaOf, type TileRecord, verify } from '../../../src/storage/index.js';
import { TileSchemas } from '../../../src/storage/tile-schema.js';
import { atEnd } from '../../support/at-end.js';
import { groupLists } from '../../support/groups.js';
import { storageProblems } from '../../support/storage-problems.js';
import { COLLECTION, cellsOf, tempFolder, writeScene } from '../sample-scenes.js';

const record = (id: string, groups: GroupRecord[], part: Partial<TileRecord> = {}): TileRecord => ({
  id,
  collection: 'c',
  scene: 's',
  grid: 'geohash',
  geocode: '9q8yy',
  version: '000000',
  source: 'raw',
  start: 0,
  end: 1,
  platform: null,
  coverage: 12.5,
  cloudCover: null,
  groups,
  footprint: [[0.1, 0.2]],
  derivedFrom: [],
  createdAt: 2,
  ...part,
});

const level = (dir: string) => new Level<string, Buffer>(join(dir, 'catalogue'), { valueEncoding: 'buffer' });

async function keysOf(db: Level<string, Buffer>, table: string): Promise<string[]> {
  return db.keys({ gte: `!${table}!`, lt: `!${table}~` }).all();
}

test('any tile record is decoded as JSON would be, even with schemas that were read again', () => {
  fc.assert(
    fc.property(fc.array(groupLists, { minLength: 1, maxLength: 4 }), (lists) => {
      const before = new TileSchemas();
      const tiles = lists.map((groups, i) =>
        record(`t${i}`, groups, i % 2 ? { inputsDigest: `${i}`, madeAs: '0v' } : {}),
      );
      const bytes = tiles.map((tile) => encodeRecord(tile.id, before.encode(tile)));
      const after = new TileSchemas();
      for (const [digest, layout] of before.takeUnwritten())
        after.add(digest, JSON.parse(JSON.stringify(layout)));
      for (const layouts of [before, after])
        for (const [i, tile] of tiles.entries()) {
          const stored = decodeRecord('tiles', tile.id, bytes[i]!) as ReturnType<TileSchemas['encode']>;
          assert.deepEqual(layouts.decode(tile.id, stored), JSON.parse(JSON.stringify(tile)));
        }
    }),
    { seed: 42 },
  );
});

test('schemas of deleted tiles are removed, and no tile ever lacks its schema', async (t) => {
  const dir = join(await tempFolder(t), 'catalogue');
  const groupsOf = (product: number): GroupRecord[] => [
    {
      ...{ name: `product ${product}`, file: 'data', role: 'data', dataType: 'uint16' },
      ...{ width: 2, height: 2, nodata: null, bytes: 1, crc32: 1, bands: [] },
    },
  ];
  const id = fc.integer({ min: 0, max: 4 }).map((number) => `t${number}`);
  const step = fc.oneof(
    fc.record({ kind: fc.constant('set' as const), id, product: fc.integer({ min: 0, max: 5 }) }),
    /** A record that was read earlier is written again, under another id. */
    fc.record({ kind: fc.constant('copy' as const), id, read: fc.nat(20) }),
    fc.record({ kind: fc.constantFrom('delete' as const), id }),
    fc.record({ kind: fc.constantFrom('drop' as const, 'open' as const) }),
  );
  const drop = (catalogue: Catalogue) => catalogue.dropUnusedSchemas(() => false, 0);
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 24 }), async (steps) => {
      await rm(dir, { recursive: true, force: true });
      let catalogue = await Catalogue.open(dir);
      const reopen = async () => {
        await catalogue.close();
        catalogue = await Catalogue.open(dir);
      };
      const products = new Map<string, string>();
      const read: TileRecord[] = [];
      const put = async (tile: TileRecord) => {
        // Changes are made before another write, which may be that of a removal, and written after it.
        const change = catalogue.tiles.set(tile.id, tile);
        await drop(catalogue);
        await catalogue.write([change]);
        products.set(tile.id, tile.groups[0]!.name);
        read.push((await catalogue.tiles.get(tile.id))!);
      };
      for (const step of steps) {
        if (step.kind === 'set') await put(record(step.id, groupsOf(step.product)));
        else if (step.kind === 'copy') {
          const copied = read[step.read % Math.max(1, read.length)];
          if (copied) await put({ ...copied, id: step.id });
        } else if (step.kind === 'delete') {
          await catalogue.write([catalogue.tiles.delete(step.id)]);
          products.delete(step.id);
        } else if (step.kind === 'drop') await drop(catalogue);
        else await reopen();
      }
      await reopen();
      const stored = await toArray(catalogue.tiles.values());
      assert.deepEqual(new Map(stored.map((tile) => [tile.id, tile.groups[0]!.name])), products);
      for (let call = 0; call < 2; call++) await drop(catalogue);
      assert.equal((await toArray(catalogue.layouts.keys())).length, new Set(products.values()).size);
      assert.equal((await toArray(catalogue.tiles.values())).length, products.size);
      await catalogue.close();
    }),
    { seed: 42, numRuns: 150 },
  );
});

test('tiles of one product share one schema, and are stored in a fraction of their size', async (t) => {
  const storage = await Storage.open(await tempFolder(t));
  atEnd(t, () => storage.close());
  await writeScene(storage, 'a', 7);
  await writeScene(storage, 'b', 8);
  const tiles: TileRecord[] = [];
  for await (const tile of storage.catalogue.tiles.values()) tiles.push(tile);
  assert.equal(new Set(tiles.map(schemaOf)).size, 1);
  assert.deepEqual(
    schemaOf(tiles[0]!)?.map(({ name }) => name),
    tiles[0]!.groups.map(({ name }) => name),
  );
  assert.equal(schemaOf({ ...tiles[0]!, groups: [...tiles[0]!.groups] }), undefined);
});

test('a schema is on disk before the first record that names it, even if a batch with it was never written', async (t) => {
  const dir = await tempFolder(t);
  let storage = await Storage.open(dir);
  await writeScene(storage, 'a', 7);
  const [tile] = await storage.getTiles([`${COLLECTION.id}_a_g${cellsOf(7)[0]}`]);
  const other = { ...tile!, groups: tile!.groups.slice(0, 1) };
  const { catalogue } = storage;
  catalogue.tiles.set(other.id, other);
  const puts = [
    catalogue.tiles.set(other.id, other),
    catalogue.tiles.set('second', { ...other, id: 'second' }),
  ];
  await Promise.all(puts.map((put) => catalogue.write([put])));
  await storage.close();
  storage = await Storage.open(dir);
  atEnd(t, () => storage.close());
  assert.deepEqual(await storage.catalogue.tiles.get(other.id), other);
  assert.deepEqual(await storage.catalogue.tiles.get('second'), { ...other, id: 'second' });
});

test('a damaged or lost schema damages the tiles that name it, until their scene is delivered again', async (t) => {
  const id = `${COLLECTION.id}_a_g${cellsOf(7)[0]}`;
  for (const damage of ['flipped', 'lost'] as const) {
    const dir = await tempFolder(t);
    let storage = await Storage.open(dir);
    await writeScene(storage, 'a', 7);
    const tile = await storage.catalogue.tiles.get(id);
    await storage.close();
    const db = level(dir);
    const [key] = await keysOf(db, 'layouts');
    const digest = key!.slice('!layouts!'.length);
    const bytes = await db.get(key!);
    bytes![bytes!.length >> 1]! ^= 1;
    await (damage === 'lost' ? db.del(key!) : db.put(key!, bytes!));
    await db.close();

    storage = await Storage.open(dir);
    await assert.rejects(storage.catalogue.tiles.get(id), {
      code: 'TW_STORAGE_CORRUPT',
      message: new RegExp(`schema ${digest} of record "${id}"`),
    });
    assert.deepEqual(await storage.getTiles([id]), []);
    const problems = (await verify(storage)).problems.map(({ kind, what }) => `${kind} ${what}`);
    const named = damage === 'lost' ? `missing layouts ${digest}` : `corrupt-record layouts ${digest}`;
    assert.equal(problems.filter((problem) => problem === named).length, 1, problems.join());
    assert.equal(problems.filter((problem) => problem.includes('layouts')).length, 1, problems.join());
    assert.ok(problems.includes(`corrupt-record tiles ${id}`));

    await writeScene(storage, 'a', 7);
    assert.deepEqual(await storageProblems(storage), []);
    assert.deepEqual((await storage.catalogue.tiles.get(id))?.groups, tile!.groups);
    await storage.close();
  }
});
