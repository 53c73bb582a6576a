import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { DecodeRequest } from '../../src/ingest/cut/memory.js';
import { IngestPool } from '../../src/ingest/cut/pool.js';
import { decodeTasks } from '../../src/ingest/cut/tasks.js';

const readBy = (reader: 'tiff' | 'gdal' | 'hdf5') => ({ header: { blocks: { reader } } }) as DecodeRequest;

test('each read is in one task; those of GDAL are distributed evenly over a few', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('tiff', 'gdal', 'hdf5')),
      fc.integer({ min: 1, max: 6 }),
      (readers, processes) => {
        const reads = readers.map(readBy);
        const tasks = decodeTasks(reads, processes).map((task) => task.reads);
        assert.deepEqual(new Set(tasks.flat()), new Set(reads));
        assert.equal(tasks.flat().length, reads.length);
        const throughGdal = tasks.filter((task) =>
          task.some(({ header }) => header.blocks.reader === 'gdal'),
        );
        const sizes = throughGdal.map((task) => task.length);
        const count = readers.filter((reader) => reader === 'gdal').length;
        assert.equal(sizes.length, Math.min(processes, count));
        assert.ok(
          sizes.every(
            (size) => size === Math.floor(count / processes) || size === Math.ceil(count / processes),
          ),
        );
        assert.ok(tasks.every((task) => throughGdal.includes(task) || task.length === 1));
      },
    ),
    { seed: 42 },
  );
});

test('the number of GDAL processes is limited by threads and memory', async () => {
  for (const [threads, memory, processes] of [
    [2, 64e6, 1],
    [2, 256e6, 1],
    [2, 1e9, 2],
    [8, 1e9, 4],
    [8, 64e9, 8],
  ] as const) {
    const workers = new IngestPool(threads, memory);
    assert.equal(workers.gdalProcesses, processes, `${threads} threads, ${memory} bytes`);
    await workers.close();
  }
});
