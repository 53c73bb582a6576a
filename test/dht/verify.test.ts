/** `verify` on a cluster node checks the shared store. */
import assert from 'node:assert/strict';
import { rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { verify } from '../../src/storage/index.js';
import { writeDerived, writeScene } from '../storage/sample-scenes.js';
import { startMember, until } from './cluster-members.js';
import { sharedStores } from './shared-stores.js';

test('a file that is missing only in the cache is not reported; one that is missing in the store is', async (t) => {
  const where = await sharedStores(t);
  const nodes = await Promise.all(['a', 'b', 'c'].map((id) => startMember(where, id)));
  const [a] = nodes as [(typeof nodes)[0]];
  for (const n of [31, 63, 95]) await writeScene(a.storage, `scene-${n % 31}`, n);
  await writeDerived(a.storage, 5);
  await until('two owners', () =>
    nodes.every(({ cluster: { placement } }) =>
      placement.slots.every((owners) => owners.filter(({ state }) => state === 'available').length === 2),
    ),
  );
  for (const { cluster } of nodes) await cluster.replica.catchUp();
  const verified = () =>
    Promise.all(
      nodes.map(({ storage, cluster }) =>
        verify(storage, () => {}, { isOwn: (cell) => cluster.hasCell(cell), missingTimeoutMs: 50 }),
      ),
    );
  await rm(join(where.folder, 'a', 'tiles', 'geohash', '9q8'), { recursive: true });
  for (const { problems, orphans, tiles } of await verified()) {
    assert.deepEqual(problems, []);
    assert.deepEqual(orphans, []);
    assert.ok(tiles > 0);
  }

  const [tile, other, third] = await a.storage.getTiles(a.storage.index.query({}).ids);
  const objectOf = (one: typeof tile, group: string) => {
    const { geocode, id, version } = one!;
    return `tiles/geohash/${geocode.slice(0, 3)}/${geocode}/${id}.${version}/${group}.tif`;
  };
  await a.storage.ensureFiles(third!, third!.groups);
  await writeFile(a.storage.tileImage(third!, '10m').path, 'damaged');
  await where.objects.delete([objectOf(tile, '10m'), objectOf(other, 'mask')]);
  await where.objects.put(objectOf(other, 'mask'), Buffer.alloc(other!.groups[1]!.bytes, 7));
  const found = new Set(
    (await verified()).flatMap(({ problems }) => problems.map(({ kind, what }) => `${kind} ${what}`)),
  );
  assert.deepEqual(
    [...found].sort(),
    [
      `checksum object ${objectOf(other, 'mask')} of tiles ${other!.id}`,
      `missing object ${objectOf(tile, '10m')} of tiles ${tile!.id}`,
    ].sort(),
  );
  assert.equal(await stat(a.storage.tileImage(third!, '10m').path).catch(() => undefined), undefined);
  await a.storage.ensureFiles(third!, third!.groups);
});
