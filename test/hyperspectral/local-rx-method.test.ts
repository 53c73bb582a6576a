/** Local RX compared with Spectral Python, and as a job compared with windows over the pixels of the complete scene. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gridByName } from '../../src/grid/index.js';
import type { Neighbour } from '../../src/hyperspectral/blocks.js';
import { pcaOrMnf } from '../../src/hyperspectral/components.js';
import type { AnomalyResults } from '../../src/hyperspectral/index.js';
import { localRxDistances } from '../../src/hyperspectral/methods/local-rx.js';
import { readImage } from '../../src/raster/index.js';
import { imageFile } from '../support/image-file.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { runJob } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';
import { COUNT, HOLE, momentsOf, pixelsOf, UNUSED, writeCube } from './cubes.js';

const filter = { collections: ['cubes'] };
const USED = Array.from({ length: COUNT }, (_, band) => band).filter((band) => !UNUSED.includes(band));
const fixture = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../../test/fixtures/hyperspectral/${name}`, import.meta.url), 'utf8'));

const SCALE = 1e-4;
const { stored, width, height }: { stored: number[][]; width: number; height: number } =
  fixture('detectors.json');
const reference: Record<'inner' | 'outer' | 'components', number> &
  Record<'bands_rx' | 'components_rx', number[]> = fixture('local_rx.json');

/** The first `count` principal components of pixels. */
function componentsOf(pixels: readonly number[][], count: number) {
  const { mean, covariance } = momentsOf(pixels);
  const task = { kind: 'components', covariance: Float64Array.from(covariance.flat()), count } as const;
  return { weights: pcaOrMnf(task).weights, centre: Float64Array.from(mean) };
}

/** A part of the pixels of the fixture as the file of a tile, with holes at some of its pixels. */
async function fileOf(
  folder: string,
  { x = 0, y = 0, columns = width, rows = height, holes = [] as number[] } = {},
) {
  const bands = stored.map((band) =>
    Int16Array.from({ length: columns * rows }, (_, i) =>
      holes.includes(i) ? HOLE : band[(y + Math.floor(i / columns)) * width + x + (i % columns)]!,
    ),
  );
  const size = { width: columns, height: rows, dataType: 'int16' } as const;
  const path = await writeRaster(join(folder, `${x}-${y}.tif`), { ...size, bands, nodata: HOLE });
  return {
    ...{ ...imageFile(path), ...size, nodata: HOLE, mask: undefined },
    bands: Array.from(stored.keys()),
    scales: stored.map(() => SCALE),
    offsets: stored.map(() => 0),
  };
}

test('inside the image, distances equal those of Spectral Python, for all bands and for components', async (t) => {
  const folder = await tempFolder(t);
  const pixels = stored[0]!.map((_, i) => stored.map((band) => band[i]! * SCALE));
  const { outer, inner } = reference;
  const reach = (outer - 1) / 2;
  const file = await fileOf(folder);
  for (const [count, wanted] of [
    [stored.length, reference.bands_rx],
    [reference.components, reference.components_rx],
  ] as const) {
    const method = { kind: 'local-distance', ...componentsOf(pixels, count), outer, inner } as const;
    const found = localRxDistances(file, [], method);
    const most = Math.max(...wanted);
    let compared = 0;
    for (const [i, value] of found.entries()) {
      const [column, row] = [i % width, Math.floor(i / width)];
      // Near the edge, Spectral Python moves the window into the image.
      const isInside = Math.min(column, row, width - 1 - column, height - 1 - row) >= reach;
      if (!isInside) continue;
      assert.ok(Math.abs(value - wanted[i]!) <= 1e-5 * most, `${i}: ${value} ${wanted[i]}`);
      compared++;
    }
    assert.equal(compared, (width - 2 * reach) * (height - 2 * reach));
  }
});

test('a complete map equals the maps of its parts, which read the pixels around them', async (t) => {
  const folder = await tempFolder(t);
  const pixels = stored[0]!.map((_, i) => stored.map((band) => band[i]! * SCALE));
  const [columns, rows] = [width / 2, height / 2];
  for (const [outer, inner] of [
    [7, 1],
    // Pixels beyond the next part.
    [35, 5],
  ] as const) {
    const method = { kind: 'local-distance', ...componentsOf(pixels, 5), outer, inner } as const;
    const entire = localRxDistances(await fileOf(folder), [], method);
    const parts = [];
    for (const [east, south] of [
      [0, 0],
      [1, 0],
      [0, 1],
      [1, 1],
    ] as const)
      parts.push({
        file: await fileOf(folder, { x: east * columns, y: south * rows, columns, rows }),
        ...{ east, south },
      });
    for (const part of parts) {
      const around: Neighbour[] = parts
        .filter((one) => one !== part)
        .map(({ file, east, south }) => ({ file, east: east - part.east, south: south - part.south }));
      const found = localRxDistances(part.file, around, method);
      for (const [i, value] of found.entries()) {
        const row = part.south * rows + Math.floor(i / columns);
        const wanted = entire[row * width + part.east * columns + (i % columns)]!;
        assert.ok(Math.abs(value - wanted) <= 1e-6 * wanted, `${i}: ${value} ${wanted}`);
      }
      const alone = localRxDistances(part.file, [], method);
      assert.ok(alone.some((value, i) => Math.abs(value - found[i]!) > 0.01 * value));
    }
  }
});

test('pixels without data do not count, and a pixel with a small or a flat background has no value', async (t) => {
  const folder = await tempFolder(t);
  const pixels = stored[0]!.map((_, i) => stored.map((band) => band[i]! * SCALE));
  const { weights, centre } = componentsOf(pixels, 3);
  const method = { kind: 'local-distance', weights, centre, outer: 5, inner: 1 } as const;
  // All but the last rows.
  const holes = Array.from({ length: 10 * width }, (_, i) => i).filter((i) => i !== 5 * width + 7);
  const found = localRxDistances(await fileOf(folder, { holes }), [], method);
  assert.ok(Number.isNaN(found[5 * width + 7]), 'nothing around it');
  for (const [i, value] of found.entries()) assert.equal(Number.isNaN(value), i < 10 * width, `${i}`);
  const cut = localRxDistances(await fileOf(folder, { y: 10, rows: 10 }), [], method);
  for (const [i, value] of cut.entries())
    assert.ok(Math.abs(value - found[10 * width + i]!) <= 1e-6 * value, 'a hole is like an edge');

  const flat = { ...(await fileOf(folder)), bands: stored.map(() => 0) };
  const same = await writeRaster(join(folder, 'flat.tif'), {
    ...{ width, height, dataType: 'int16', nodata: HOLE },
    bands: stored.map(() => Int16Array.from({ length: width * height }, (_, i) => (i === 0 ? 9 : 5))),
  });
  const values = localRxDistances({ ...flat, ...imageFile(same) }, [], method);
  assert.ok(values.every(Number.isNaN));
});

test('maps of a collection have no seams between tiles, and its inputs are checked', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  await ingest(node, { href: writeCube(folder, 'a'), collection: 'cubes', precision: 6 });
  await ingest(node, {
    href: writeCube(folder, 'b', { seed: 2, date: '2024-06-02' }),
    ...{ collection: 'cubes', precision: 6 },
  });
  const [outer, inner, count] = [13, 3, 4];
  const run = (inputs: object) =>
    runJob<AnomalyResults>(node, 'analyse-anomaly', { filter, window: [outer, inner], ...inputs });
  const { status, results, error } = await run({ components: count });
  assert.equal(status, 'successful', error?.message);
  assert.deepEqual([results.window, results.components], [[outer, inner], count]);
  assert.ok(results.held! > 0.9 && results.held! < 1);

  const { weights, centre } = componentsOf(await pixelsOf(node, 'cubes', USED), count);
  const tiles = await tilesOf(node);
  const raw = tiles.filter(({ source }) => source === 'raw');
  const maps = tiles.filter(({ source }) => source === 'anomaly');
  assert.equal(maps.length, raw.length);
  for (const scene of new Set(raw.map((tile) => tile.scene))) {
    const own = raw.filter((tile) => tile.scene === scene);
    const cells = own.map(({ grid, geocode }) => gridByName(grid).bounds(geocode));
    const [west, north] = [
      Math.min(...cells.map((one) => one.west)),
      Math.max(...cells.map((one) => one.north)),
    ];
    const sizes = own.map(({ groups: [group] }) => ({ width: group!.width, height: group!.height }));
    const [size] = sizes;
    for (const one of sizes) assert.deepEqual(one, size);
    // The scores of all pixels of the scene, by their row and column.
    const scores = new Map<string, number[]>();
    const corners = cells.map((one) => [
      Math.round((one.west - west) / (one.east - one.west)) * size!.width,
      Math.round((north - one.north) / (one.north - one.south)) * size!.height,
    ]);
    for (const [k, tile] of own.entries()) {
      const group = tile.groups.find(({ role }) => role === 'data')!;
      const { bands } = await readImage(node.storage.tileImage(tile, group.name));
      for (let i = 0; i < group.width * group.height; i++) {
        if (USED.some((band) => bands[band]![i] === group.nodata)) continue;
        const pixel = USED.map((band, b) => bands[band]![i]! * group.bands[band]!.scale - centre[b]!);
        const [x, y] = [corners[k]![0]! + (i % group.width), corners[k]![1]! + Math.floor(i / group.width)];
        const row = (r: number) =>
          pixel.reduce((sum, value, b) => sum + weights[r * USED.length + b]! * value, 0);
        scores.set(
          `${x} ${y}`,
          Array.from({ length: count }, (_, r) => row(r)),
        );
      }
    }
    let compared = 0;
    for (const [k, tile] of own.entries()) {
      const map = maps.find(({ derivedFrom }) => derivedFrom[0] === tile.id)!;
      assert.equal(map.derivedFrom.length, 1);
      const [made] = (await readImage(node.storage.tileImage(map, map.groups[0]!.name))).bands;
      for (const [i, value] of made!.entries()) {
        const [x, y] = [corners[k]![0]! + (i % size!.width), corners[k]![1]! + Math.floor(i / size!.width)];
        const pixel = scores.get(`${x} ${y}`);
        // Every third pixel, to limit the time.
        if (pixel && (x + y) % 3 !== 0) continue;
        const wanted = pixel && distanceFrom(pixel, backgroundOf(scores, x, y, outer, inner));
        if (wanted === undefined) assert.ok(Number.isNaN(value));
        else {
          assert.ok(Math.abs(value - wanted) <= 1e-4 * wanted + 1e-4, `${x} ${y}: ${value} ${wanted}`);
          compared++;
        }
      }
    }
    assert.ok(compared > 1000);
  }

  // The same tiles as with the complete collection, but different values.
  const again = (await run({ components: count })).results;
  assert.deepEqual([again.tiles, again.unchanged], [0, results.tiles]);
  const entire = await runJob<AnomalyResults>(node, 'analyse-anomaly', { filter });
  assert.equal(entire.results.tiles, results.tiles);
  assert.equal((await tilesOf(node)).filter(({ source }) => source === 'anomaly').length, maps.length);
  for (const [inputs, why] of [
    [{ window: [10] }, /a side of 10 pixels is not odd/],
    [{ window: [11, 11] }, /inner side of 11 pixels is not smaller than 11/],
    [{ window: [5, 3] }, /16 pixels lie between sides of 3 and 5, and 10 components need 20/],
    [{ window: undefined, components: 3 }, /components need a window/],
  ] as const)
    await assert.rejects(run(inputs), why);
});

/** The scores of the pixels of a window that are not in the inner one. */
function backgroundOf(scores: Map<string, number[]>, x: number, y: number, outer: number, inner: number) {
  const found: number[][] = [];
  const [reach, guard] = [(outer - 1) / 2, (inner - 1) / 2];
  for (let dy = -reach; dy <= reach; dy++)
    for (let dx = -reach; dx <= reach; dx++) {
      const one = scores.get(`${x + dx} ${y + dy}`);
      if (one && (Math.abs(dx) > guard || Math.abs(dy) > guard)) found.push(one);
    }
  return found;
}

/** The squared Mahalanobis distance, by elimination; undefined with fewer than 2 pixels for each component. */
function distanceFrom(pixel: number[], background: number[][]): number | undefined {
  if (background.length < 2 * pixel.length) return undefined;
  const { mean, covariance } = momentsOf(background);
  const less = pixel.map((value, k) => value - mean[k]!);
  const rows = covariance.map((row, i) => [...row, less[i]!]);
  for (let k = 0; k < rows.length; k++)
    for (let i = k + 1; i < rows.length; i++) {
      const share = rows[i]![k]! / rows[k]![k]!;
      for (let c = k; c <= rows.length; c++) rows[i]![c]! -= share * rows[k]![c]!;
    }
  // Elimination gives the squares of the whitened differences divided by their variances.
  return rows.reduce((sum, row, k) => sum + row[rows.length]! ** 2 / row[k]!, 0);
}
