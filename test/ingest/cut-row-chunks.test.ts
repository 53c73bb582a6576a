/** How the source rows of a scene are planned into memory. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { geohash } from '../../src/grid/index.js';
import { coverScene, sourceRowsForCell } from '../../src/ingest/cells.js';
import { bandBytes, planChunks, windowBytes, windowHeights } from '../../src/ingest/cut/chunks.js';
import { RowBuffer, SharedMemory } from '../../src/ingest/cut/memory.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import type { Scene } from '../../src/ingest/scene.js';
import { encodeCog, type RasterHeader, readRowsOfRasters, viewPixels } from '../../src/raster/index.js';
import { tempFolder } from '../support/temp.js';

/** A scene whose pixels are their own row numbers, in blocks of 512 rows. */
async function scene(folder: string, width: number, height: number): Promise<Scene> {
  const path = join(folder, `${width}x${height}.tif`);
  const pixels = Uint16Array.from({ length: width * height }, (_, i) => Math.floor(i / width) + 1);
  const image = {
    width,
    height,
    dataType: 'uint16' as const,
    bands: [pixels],
    transform: { originX: 500_000, originY: 5_300_000, pixelWidth: 10, pixelHeight: 10 },
    epsg: 32633,
    overviews: 'nearest' as const,
  };
  await writeFile(path, encodeCog(image));
  const [found] = await describeScenes(path, { collection: 'rows', datetime: '2024-01-01' });
  return found;
}

test('windows hold the rows of their cells within the budget, and decode each block once if possible', async (t) => {
  const folder = await tempFolder(t);
  const { path, groups, ...rest } = await scene(folder, 700, 3000);
  const described = { path, groups, ...rest };
  const cells = coverScene(described, geohash, 6);
  const { header } = groups[0].bands[0];
  for (const blockRows of [1, 2, 3, 6]) {
    const budget = bandBytes(header, 512 * blockRows);
    const chunks = planChunks(path, groups, geohash, cells, budget);
    assert.deepEqual(chunks.flatMap((chunk) => chunk.geocodes).toSorted(), cells.toSorted());
    const [height] = windowHeights(groups, chunks);
    assert.ok(windowBytes(groups[0], height) <= budget);

    const buffer = new SharedArrayBuffer(windowBytes(groups[0], height));
    const window = new RowBuffer(header, [0], buffer, [0]);
    let decoded = 0;
    for (const { geocodes, windows } of chunks) {
      for (const task of window.advance(windows[0], 3)) {
        const pixels = viewPixels('uint16', buffer, 0, (task.rowEnd - task.firstRow) * header.width);
        const { rowStart, rowEnd, firstRow } = task;
        await readRowsOfRasters([{ header, bands: [0], rowStart, rowEnd, into: [pixels], firstRow }]);
        decoded += task.rowEnd - task.rowStart;
      }
      const pixels = viewPixels('uint16', buffer, 0, (window.end - window.start) * header.width);
      for (const geocode of geocodes) {
        const [from, to] = sourceRowsForCell(groups[0], geohash, geocode);
        assert.ok(from >= window.start && to <= window.end, `${geocode} of chunk ${windows[0]}`);
        for (let row = from; row < to; row++)
          assert.equal(pixels[(row - window.start) * header.width], row + 1, `row ${row}`);
      }
    }
    // One row of blocks is too small for a cell that spans two: blocks at the ends of windows are then decoded twice.
    if (blockRows > 1) assert.ok(decoded <= 3000, `${decoded} rows decoded with ${blockRows} block rows`);
  }
  assert.throws(() => planChunks(path, groups, geohash, cells, bandBytes(header, 20)), {
    code: 'TW_INGEST_TOO_LARGE',
  });
});

test('a window that moves anywhere holds the right rows', async (t) => {
  const folder = await tempFolder(t);
  const { groups } = await scene(folder, 20, 1100);
  const { header } = groups[0].bands[0];
  const span = fc
    .tuple(fc.integer({ min: 0, max: 1099 }), fc.integer({ min: 0, max: 700 }))
    .map(([from, rows]): [number, number] => [from, Math.min(1100, from + rows)]);
  await fc.assert(
    fc.asyncProperty(
      fc.array(span, { maxLength: 6 }),
      fc.integer({ min: 1, max: 5 }),
      async (spans, pieces) => {
        const offsets = [64];
        const buffer = new SharedArrayBuffer(64 + bandBytes(header, 700));
        const window = new RowBuffer(header, [0], buffer, offsets);
        for (const rows of spans) {
          await decodeAll(header, window, rows, pieces, buffer);
          const pixels = viewPixels('uint16', buffer, 64, (rows[1] - rows[0]) * 20);
          for (let row = rows[0]; row < rows[1]; row++)
            assert.equal(pixels[(row - rows[0]) * 20 + 7], row + 1);
        }
      },
    ),
    { seed: 42, numRuns: 60 },
  );
});

async function decodeAll(
  header: RasterHeader,
  window: RowBuffer,
  rows: [number, number],
  pieces: number,
  buffer: SharedArrayBuffer,
): Promise<void> {
  const done: [number, number][] = [];
  for (const task of window.advance(rows, pieces)) {
    const pixels = viewPixels(
      'uint16',
      buffer,
      task.offsets[0],
      (task.rowEnd - task.firstRow) * header.width,
    );
    const { rowStart, rowEnd, firstRow } = task;
    await readRowsOfRasters([{ header, bands: [0], rowStart, rowEnd, into: [pixels], firstRow }]);
    const blocks: [number, number] = [Math.floor(task.rowStart / 512), Math.ceil(task.rowEnd / 512)];
    done.push(blocks);
  }
  // No two tasks decode the same block, unless the kept rows lie between them.
  for (const [i, [from]] of done.entries()) if (i > 0) assert.ok(from >= done[i - 1][0]);
}

test('allocations do not overlap, are granted in order, and none waits for ever', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 1000 }), fc.integer({ min: 0, max: 5 })), {
        maxLength: 30,
      }),
      async (requests) => {
        const arena = new SharedMemory(1000);
        const held: { from: number; to: number }[] = [];
        const order: number[] = [];
        await Promise.all(
          requests.map(async ([bytes, turns], i) => {
            const piece = await arena.allocate(bytes, 'scene.tif');
            order.push(i);
            const range = { from: piece.offset, to: piece.offset + bytes };
            assert.equal(piece.offset % 64, 0);
            assert.ok(range.to <= 1000);
            for (const other of held)
              assert.ok(
                range.to <= other.from || range.from >= other.to || bytes === 0 || other.from === other.to,
              );
            held.push(range);
            for (let turn = 0; turn < turns; turn++) await null;
            held.splice(held.indexOf(range), 1);
            piece.release();
          }),
        );
        assert.deepEqual(order, [...requests.keys()]);
      },
    ),
    { seed: 42 },
  );
});

test('a waiting allocation can be cancelled, and the next one is granted', async () => {
  const arena = new SharedMemory(100);
  const first = await arena.allocate(80, 'a.tif');
  const controller = new AbortController();
  const waiting = arena.allocate(90, 'b.tif', controller.signal);
  const next = arena.allocate(20, 'c.tif');
  controller.abort(new Error('enough'));
  await assert.rejects(waiting, /enough/);
  first.release();
  (await next).release();
  await assert.rejects(arena.allocate(101, 'd.tif'), { code: 'TW_INGEST_TOO_LARGE', message: /d\.tif/ });
});
