/** The expected content of the index, from a scan of the catalogue. */
import assert from 'node:assert/strict';
import type { Storage, TileRecord } from '../../../src/storage/index.js';
import { newestFirst } from '../../query/tiles.js';

export async function assertIndexed(storage: Storage): Promise<void> {
  const records: TileRecord[] = [];
  for await (const { record } of storage.catalogue.tiles.scan()) if (record) records.push(record);
  const { index } = storage;
  assert.deepEqual(
    index.query({}).ids,
    records.sort(newestFirst).map((record) => record.id),
  );
  assert.equal(index.size, records.length);
  for (const record of records) assert.ok(index.agrees(record), record.id);
}
