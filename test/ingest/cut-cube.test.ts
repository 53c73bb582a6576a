/** A cube that is cut in pieces equals one that is cut in one piece. */
import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { gridByName } from '../../src/grid/index.js';
import { coverScene } from '../../src/ingest/cells.js';
import { cubeMemoryBounds, cutCubes } from '../../src/ingest/cut/cube.js';
import { encodeFile } from '../../src/ingest/cut/encode.js';
import type { CellGroup, SourceRows, WarpTask } from '../../src/ingest/cut/tasks.js';
import { warpFile } from '../../src/ingest/cut/warp.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { readRowsOfRasters } from '../../src/raster/index.js';
import { INTERLEAVES, writeEnvi } from '../raster/envi.js';
import { random } from '../raster/images.js';
import { tempFolder } from '../support/temp.js';

const COUNT = 17;
const grid = gridByName('geohash');

const MAPS = [
  'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}',
  // A rotated flight line, and one that ends south of its start.
  'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84, rotation=35}',
  'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84, rotation=180}',
];

test('the memory for cutting a cube does not affect the result', async (t) => {
  const folder = await tempFolder(t);
  const cases = fc.record({
    width: fc.integer({ min: 40, max: 150 }),
    height: fc.integer({ min: 40, max: 150 }),
    map: fc.constantFrom(...MAPS),
    interleave: fc.constantFrom(...INTERLEAVES),
    nodata: fc.boolean(),
    compressed: fc.boolean(),
    room: fc.double({ min: 0, max: 1, noNaN: true }),
    seed: fc.nat(),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ width, height, map, interleave, nodata, compressed, room, seed }) => {
      const next = random(seed);
      const bands = Array.from({ length: COUNT }, () =>
        Array.from({ length: width * height }, (_, i) =>
          nodata && i % width < 20 ? -9999 : Math.floor(next() * 5000),
        ),
      );
      const lines = [
        map,
        'acquisition time = 2024-06-01T10:00:00Z',
        `wavelength = {${bands.map((_, band) => 400 + 20 * band).join()}}`,
        'wavelength units = nm',
        ...(nodata ? ['data ignore value = -9999'] : []),
      ];
      writeEnvi(join(folder, 'cube.dat'), { width, height, bands, type: 'int16', interleave, lines });
      const [scene] = await describeScenes(join(folder, 'cube.hdr'), { collection: 'c' });
      const [group] = scene!.groups;
      const [{ header }] = group!.bands as [(typeof group)['bands'][number]];
      const cells = coverScene(scene!, grid, 6);
      const geocode = cells[Math.floor(next() * cells.length)]!;
      const cell: CellGroup = {
        grid: 'geohash',
        geocode,
        width: 180,
        height: 150,
        name: '30m',
        role: 'data',
        resampling: 'nearest',
        dataType: 'int16',
        nodata: group!.nodata,
        colours: undefined,
        bands: group!.bands.map(({ name, scale, offset, wavelength }) => ({
          name,
          scale,
          offset,
          ...(wavelength !== undefined && { wavelength }),
        })),
        metadata: { SCENE: 's' },
        compressed,
      };

      const path = join(folder, 'tile.tif');
      await rm(path, { force: true });
      const { least, most } = cubeMemoryBounds(cell, header);
      const bytes = Math.round(least + room * (most - least));
      const mask = { reference: 0, quality: [], others: [] };
      const files = group!.bands.map(({ header, index }) => ({ header, index }));
      const found = await cutCubes({
        kind: 'cube',
        cells: [cell],
        sources: [{ nodata: group!.nodata, bands: files }],
        path,
        bytes,
        offset: 64,
        mask,
        buffer: new SharedArrayBuffer(64 + bytes),
      });

      const source = await wholeSource(header, group!.nodata);
      const task: WarpTask = { kind: 'cut', cells: [cell], sources: [source], mask };
      const pixels = warpFile(task);
      if (!pixels) {
        assert.equal(found, null);
        await assert.rejects(readFile(path), { code: 'ENOENT' });
        return;
      }
      const { file, negative: _, ...made } = encodeFile([cell], pixels);
      assert.deepEqual(found, { file: { ...file, bytes: null }, ...made });
      assert.ok(Buffer.from(file.bytes!).equals(await readFile(path)));
    }),
    { seed: 27, numRuns: 40 },
  );
});

async function wholeSource(
  header: Awaited<ReturnType<typeof describeScenes>>[number]['groups'][number]['bands'][number]['header'],
  nodata: number | null,
): Promise<SourceRows> {
  const { dataType, crs, transform, width, height } = header;
  const size = width * height;
  const buffer = new SharedArrayBuffer(size * COUNT * 2);
  const offsets = Array.from({ length: COUNT }, (_, band) => band * size * 2);
  const into = offsets.map((offset) => new Int16Array(buffer, offset, size));
  await readRowsOfRasters([
    { header, bands: [...offsets.keys()], rowStart: 0, rowEnd: height, into, firstRow: 0 },
  ]);
  const place = { crs, transform, width, height, rowStart: 0, rowEnd: height };
  return { dataType, nodata, ...place, buffer, offsets, validity: offsets.map(() => null) };
}
