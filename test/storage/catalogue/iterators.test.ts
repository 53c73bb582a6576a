/** An open iterator of LevelDB keeps its memory, and a snapshot that prevents compaction from removing anything. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClassicLevel } from 'classic-level';
import { Storage } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { tempFolder } from '../../support/temp.js';
import { writeScene } from '../sample-scenes.js';

test('commits, interrupted scans and garbage collection leave no iterator open', async (t) => {
  const open = new Set<object>();
  for (const method of ['keys', 'values', 'iterator'] as const) {
    const make = ClassicLevel.prototype[method];
    const watched = function (this: ClassicLevel, options: object) {
      const iterator = make.call(this, options as never);
      const close = iterator.close.bind(iterator);
      iterator.close = () => {
        open.delete(iterator);
        return close();
      };
      open.add(iterator);
      return iterator;
    };
    t.mock.method(ClassicLevel.prototype, method, watched as never);
  }
  const storage = await Storage.open(await tempFolder(t), { sweepDelay: 3_600_000 });
  atEnd(t, () => storage.close());
  // The second delivery leaves superseded versions.
  await writeScene(storage, 'a', 1);
  await writeScene(storage, 'a', 2);
  for (let applied = 1; applied <= 3; applied++)
    await storage.replicate({ cluster: 'c', applied, slots: '' }, {});
  for await (const _ of storage.catalogue.tiles.values()) break;
  assert.equal(await storage.catalogue.tiles.isEmpty(), false);
  await storage.collectOldVersions();
  assert.equal(open.size, 0);
});
