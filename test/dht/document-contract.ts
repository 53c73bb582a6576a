import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareAndSet, documentDamaged, type StoredValue } from '../../src/coordination/index.js';
import { otherCluster } from '../../src/dht/index.js';
import { deleteSchema, readSchema, updateSchema } from '../../src/dht/log/committer.js';
import { PLACEMENT_KEY, readPlacement, watchPlacement } from '../../src/dht/placement-store.js';
import { createClusterIfAbsent, readCluster, requireSameCluster } from '../../src/dht/recovery.js';
import type { OpenStore } from '../coordination/kv-store-contract.js';
import { eventually } from '../support/eventually.js';

export function documentContract(open: OpenStore): void {
  test('one of several concurrent changes replaces the placement, and watches report it', async (t) => {
    const node = await open(t);
    const store = node();
    assert.equal(await readPlacement(store), undefined);
    const reported: StoredValue[] = [];
    const watch = watchPlacement(node(), (placement) => reported.push(placement), assert.ifError);
    const race = (revision: number, texts: string[]) =>
      Promise.all(
        texts.map((text) => compareAndSet(node(), { key: PLACEMENT_KEY, value: text, revision: revision })),
      );
    for (const round of [1, 2, 3]) {
      const before = await readPlacement(store);
      const swaps = await race(before?.modRevision ?? 0, [`${round} a`, `${round} b`, `${round} c`]);
      assert.equal(swaps.filter(({ set }) => set).length, 1);
      const now = await readPlacement(store, { serializable: true });
      const won = swaps.find(({ set }) => set)!;
      for (const { current } of [won, ...swaps])
        assert.deepEqual([current?.value, current?.modRevision], [now?.value, now?.modRevision]);
    }
    const last = await readPlacement(store);
    await eventually('the last placement', () => reported.at(-1)?.modRevision === last!.modRevision);
    assert.deepEqual(reported.at(-1), last);
    watch.close();
    assert.equal(
      (await compareAndSet(store, { key: PLACEMENT_KEY, value: 'old', revision: last!.modRevision - 1 })).set,
      false,
    );
    assert.equal((await compareAndSet(store, { key: PLACEMENT_KEY, value: 'new', revision: 0 })).set, false);
  });

  test('the schema of a collection is created by the first node, changed by compare-and-set, and deleted', async (t) => {
    const node = await open(t);
    const store = node();
    const wanted = [3, 4, 5].map((precision) => ({ grid: 'geohash', precision }));
    const keys = await Promise.all(
      wanted.map((fixed) => updateSchema(node(), { id: 'naip', revision: 0 }, fixed)),
    );
    const key = (await readSchema(store, 'naip'))!;
    for (const { current } of keys) assert.deepEqual(current, key);
    await updateSchema(store, { id: 'other', revision: 0 }, wanted[0]!);
    assert.equal((await readSchema(store, 'other'))!.id, 'other');

    const fixed = { ...key.schema, groups: ['1m'] };
    const { changed, current } = await updateSchema(store, key, fixed);
    assert.equal(changed, true);
    assert.deepEqual(current!.schema, fixed);
    assert.deepEqual(await updateSchema(store, key, { grid: 'x', precision: 1 }), {
      changed: false,
      current,
    });
    assert.equal(await deleteSchema(store, key), false);
    assert.equal(await deleteSchema(store, current!), true);
    assert.equal(await readSchema(store, 'naip'), undefined);
  });

  test('a cluster cannot be joined with other settings', async (t) => {
    const node = await open(t);
    const cluster = { id: 'c1', format: 1, prefixLengths: { geohash: 4, quadtile: 9 } };
    const existing = await createClusterIfAbsent(node(), cluster);
    assert.deepEqual(await createClusterIfAbsent(node(), { ...cluster, id: 'c2' }), existing);
    assert.deepEqual(await readCluster(node()), existing);
    requireSameCluster(existing, { ...cluster, prefixLengths: { quadtile: 9, geohash: 4 } });
    for (const other of [{ id: 'c2' }, { format: 2 }, { prefixLengths: { geohash: 3, quadtile: 9 } }])
      await assert.rejects(async () => requireSameCluster(existing, { ...cluster, ...other }), {
        code: otherCluster.code,
      });
  });

  test('values of other programs are named', async (t) => {
    const store = (await open(t))();
    for (const value of ['', '{"grid":"geohash"}', '[]', 'null']) {
      await store.transact({ success: [{ op: 'put', key: 'collections/x', value }] });
      await assert.rejects(readSchema(store, 'x'), {
        code: documentDamaged.code,
        message: /collections\/x/,
      });
    }
  });
}
