/** The counts of records, against a scan of their keys. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { toArray } from '../../../src/async/index.js';
import { Catalogue, type CatalogueChange } from '../../../src/storage/index.js';
import { tempFolder } from '../../support/temp.js';

const TABLES = ['collections', 'scenes', 'models', 'requests'] as const;

const change = fc.record({
  table: fc.constantFrom(...TABLES),
  key: fc.constantFrom('a', 'b', 'c', 'd'),
  isPut: fc.boolean(),
});

test('counts follow batches that add, replace, remove and repeat records, also during the first count', async (t) => {
  const dir = await tempFolder(t);
  let catalogue = await Catalogue.open(dir);
  const property = fc.asyncProperty(
    fc.array(fc.array(change, { minLength: 1, maxLength: 6 }), { maxLength: 8 }),
    fc.nat(8),
    fc.boolean(),
    async (batches, countAt, reopens) => {
      if (reopens) {
        await catalogue.close();
        catalogue = await Catalogue.open(dir);
      }
      const pending: Promise<unknown>[] = [];
      for (const [i, batch] of batches.entries()) {
        if (i === countAt) pending.push(catalogue.counts());
        pending.push(
          catalogue.write(
            batch.map(({ table, key, isPut }): CatalogueChange => {
              const records = catalogue[table];
              return isPut ? records.set(key, { since: i } as never) : records.delete(key);
            }),
            false,
          ),
        );
      }
      await Promise.all(pending);
      const { collections, scenes, models } = catalogue;
      const [one, two, three] = await Promise.all(
        [collections, scenes, models].map(async (table) => (await toArray(table.keys())).length),
      );
      assert.deepEqual(await catalogue.counts(), { collections: one, scenes: two, models: three });
    },
  );
  await fc.assert(property, { seed: 52, numRuns: 60 });
  await catalogue.close();
});
