/** Exported images: the same pixels as GDAL's mosaic of the tile files, the newest date first, and refused inputs. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { exportTooLarge } from '../../src/derive/errors.js';
import { MosaicImage, mosaicGrid } from '../../src/derive/export.js';
import { DerivePool, type ExportResults, exportProcess } from '../../src/derive/index.js';
import { localQueries } from '../../src/dht/index.js';
import { geohash } from '../../src/grid/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { TileFinder } from '../../src/query/index.js';
import { Mask, readRaster } from '../../src/raster/index.js';
import { Storage } from '../../src/storage/index.js';
import { gdal, needsGdal } from '../raster/gdal.js';
import { atEnd } from '../support/at-end.js';
import { tilewright } from '../support/command.js';
import { hasGdal } from '../support/gdal.js';
import { putModel } from '../support/models.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { runProcess } from '../support/process.js';
import { runJob } from '../support/run-job.js';
import { type SceneOptions, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';
import { randomly, runProcess as runDerive, storeScene } from './tiles.js';

test('an exported image has the pixels of the tiles', async (t) => {
  const { folder, data, run, output } = await folderWith(t, [{ seed: 1 }, { seed: 2, edge: 150 }]);
  const command = await run('export', '--bands', 'red', '--output', output);
  assert.equal(command.code, 0, command.stderr);
  assert.match(
    command.stderr,
    /^warning: the image mixes 2 dates, 2024-06-01 to 2024-06-02: .* with --datetime$/m,
  );
  const both = await readRaster(output);
  const node = await openData(t, data);
  const exportedAt = async (day: string) =>
    readRaster(await imageOf(node, { bands: ['red'], filter: { datetime: during(day, day) } }));
  const first = await exportedAt('2024-06-01');
  const second = await exportedAt('2024-06-02');
  const tiles = await tilesOf(node);
  if (hasGdal) {
    const files = tiles
      .filter(({ scene }) => scene.includes('s0'))
      .map((tile) => {
        const group = tile.groups.find(({ bands }) => bands.some(({ commonName }) => commonName === 'red'))!;
        return {
          path: node.storage.tileImage(tile, group.name).path,
          band: 1 + group.bands.findIndex(({ commonName }) => commonName === 'red'),
        };
      });
    const vrt = join(folder, 'all.vrt');
    const oracle = join(folder, 'all.tif');
    execFileSync('gdalbuildvrt', ['-q', vrt, ...files.map(({ path }) => path)]);
    execFileSync('gdal_translate', ['-q', '-b', String(files[0]!.band), vrt, oracle]);
    const expected = await readRaster(oracle);
    assert.deepEqual(
      [first.header.width, first.header.height],
      [expected.header.width, expected.header.height],
    );
    assert.deepEqual(first.bands[0], expected.bands[0]);
  }
  const empty = first.header.nodata!;
  assert.ok(
    second.bands[0]!.includes(empty) && !both.bands[0]!.every((value, at) => value === first.bands[0]![at]),
  );
  // The grids are the same, because both scenes have tiles in the same cells.
  assert.equal(both.bands[0]!.length, first.bands[0]!.length);
  const offset = Math.round(
    (second.header.transform!.originX - both.header.transform!.originX) / both.header.transform!.xx,
  );
  const down = Math.round(
    (both.header.transform!.originY - second.header.transform!.originY) / -both.header.transform!.yy,
  );
  for (let row = 0; row < second.header.height; row += 7)
    for (let column = 0; column < second.header.width; column += 7) {
      const newest = second.bands[0]![row * second.header.width + column]!;
      const at = (row + down) * both.header.width + column + offset;
      assert.equal(both.bands[0]![at], newest === empty ? first.bands[0]![at] : newest);
    }
});

test('an export without tiles, or of a band that no tile has, makes no file', async (t) => {
  const { run, output } = await folderWith(t, [{ seed: 1 }]);
  for (const [flags, code] of [
    [['--layer', 'ndvi'], /TW_WRANGLE_EXPORT_NOTHING/],
    [['--bands', 'absent'], /TW_WRANGLE_NO_BAND/],
    [[], /required option '--layer <model>' or '--bands <list>'/],
    [['--layer', 'ndvi', '--bands', 'red'], /cannot be used with/],
  ] as const) {
    const { code: exit, stderr } = await run('export', '--output', output, ...flags);
    assert.ok(exit !== 0, stderr);
    assert.match(stderr, code);
  }
  assert.ok(!existsSync(output));
});

test('an export of several collections needs their names', async (t) => {
  const { data, run, output } = await folderWith(t, [{ collection: 'one' }, { collection: 'two' }]);
  const node = await openData(t, data);
  const refused = await runJob(node, 'export', { bands: ['red'] });
  assert.equal(refused.error?.code, 'TW_WRANGLE_EXPORT_COLLECTIONS');
  assert.match(refused.error.message, /belong to the collections one and two: .*--collection one$/);
  await imageOf(node, { bands: ['red'], filter: { collections: ['one'] } });
  await node.close();
  const names = ['--collection', 'one', '--collection', 'two'];
  assert.equal((await run('export', '--bands', 'red', '--output', output, ...names)).code, 0);
});

/** Opens a node with one thread for each kind of work: the load of a thread takes longer than the work of these tests. */
const openData = (t: Parameters<typeof tempFolder>[0], data: string) => testNode(t, data, { cores: 1 });

/** A data folder with a scene of each day from 2024-06-01 on. */
async function folderWith(
  t: Parameters<typeof tempFolder>[0],
  scenes: (SceneOptions & { collection?: string })[],
) {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await openData(t, data);
  for (const [i, { collection = 'test', ...options }] of scenes.entries()) {
    const href = await writeTestScene(join(folder, `s${i}.tif`), options);
    const about = { id: `s${i}`, datetime: `2024-06-0${i + 1}T10:00:00Z`, collection };
    const { failed } = await ingest(node, { href, ...about, scale: 0.0001, maskBand: 5, precision: 6 });
    assert.deepEqual(failed, []);
  }
  await node.close();
  const run = (...args: string[]) => tilewright(...args, '--data', data);
  return { folder, data, run, output: join(folder, 'out.tif') };
}

const during = (first: string, last: string) => `${first}T00:00:00Z/${last}T23:59:59Z`;

/** Exports on a node, and returns the path of the image. */
async function imageOf(node: TilewrightNode, inputs: object): Promise<string> {
  const { id, results, error } = await runJob<ExportResults>(node, 'export', inputs);
  assert.equal(error, undefined);
  return node.storage.results.path(id, results.file);
}

/** A data folder with a scene of each day; on the second day its western `edge` columns lack data, and its eastern part is cloud. */
function twoDates(t: Parameters<typeof tempFolder>[0], edge = 0) {
  return folderWith(t, [{ seed: 1 }, { seed: 2, cloud: 40, edge }]);
}

test('the layer of cloud removal has filled tiles and the raw tiles without cloud', async (t) => {
  const { data, run, output } = await twoDates(t);
  const layer = ['export', '--layer', 'cloud-removal', '--output', output];
  const node = await openData(t, data);
  const untrained = await runJob(node, 'export', { layer: 'cloud-removal' });
  assert.match(
    untrained.error!.message,
    /cloud-removal has no tiles yet: .*"tilewright predict cloud-removal"/,
  );
  const tiles = await tilesOf(node);
  const cloudy = tiles.find(({ cloudCover }) => cloudCover! > 20 && cloudCover! < 80)!;
  // The tile that a model has filled, and for each other cell the newest tile without cloud.
  const cells = new Set(tiles.map(({ geocode }) => geocode)).size;
  await putModel(node.storage, [cloudy], { model: 'cloud-removal' });
  await node.close();
  const predicted = await run('predict', 'cloud-removal', '--only-own', '--geocode', cloudy.geocode);
  assert.equal(predicted.code, 0, predicted.stderr);
  const { stdout, stderr } = await run(...layer, '--format', 'json');
  const { tiles: exported, filled, withoutCloud } = JSON.parse(stdout || '{}');
  assert.deepEqual([exported, filled, withoutCloud], [cells, 1, cells - 1], stderr);
  const where = ['--filter', `geocode = '${cloudy.geocode}' OR geocode = 'u0000'`];
  const one = await run(...layer, '--datetime', '2024-06-02', ...where);
  assert.match(one.stdout, /out\.tif: 1 tile \(1 filled, 0 without cloud\),/);
  // Without a tile that a model has filled, the image would be that of the raw tiles.
  const again = await openData(t, data);
  const inputs = { layer: 'cloud-removal', filter: { datetime: during('2024-06-01', '2024-06-01') } };
  const raw = await runJob(again, 'export', inputs);
  assert.equal(raw.error?.code, 'TW_WRANGLE_EXPORT_NOTHING');
  assert.match(raw.error.message, /cloud-removal has tiles, but none at this time /);
});

test('the layer of an index has its bands, and says why it is empty', async (t) => {
  const { data, run, output } = await twoDates(t, 20);
  const layer = ['export', '--layer', 'ndvi', '--output', output];
  const node = await openData(t, data);
  const tiles = (await tilesOf(node)).sort((a, b) => b.coverage - a.coverage);
  // Its cell lacks data at the edge on the second day.
  const west = tiles.findLast(({ coverage, scene }) => scene === 's1' && coverage > 20)!;
  const first = tiles.find(({ geocode, scene }) => scene === 's0' && geocode === west.geocode);
  const covered = tiles.find(({ cloudCover }) => cloudCover === 100)!;
  const other = await putModel(node.storage, [covered]);
  const { id } = await putModel(node.storage, [first!]);
  const inputs = { layer: 'ndvi', filter: { geocode: first!.geocode } };
  assert.deepEqual(await runProcess(node, 'export', inputs), { failed: 'TW_WRANGLE_EXPORT_NOTHING' });
  const made = await runProcess<{ tiles: number }>(node, 'predict', { model: id });
  assert.equal(made.tiles, 2);
  const exported = await runProcess<ExportResults>(node, 'export', inputs);
  assert.deepEqual(
    [exported.tiles, exported.dates, exported.bands],
    [2, ['2024-06-01', '2024-06-02'], ['ndvi']],
  );
  for (const [more, reason] of [
    [{ datetime: during('1999-01-01', '1999-12-31') }, /ndvi has tiles, but none at this time \(datetime\)$/],
    [{ bbox: [1, 1, 2, 2] }, /ndvi has tiles, but none in this region$/],
    [
      { bbox: [1, 1, 2, 2], datetime: during('1999-01-01', '1999-12-31') },
      /none at this time \(datetime\) in this region$/,
    ],
    [{ platform: 'other' }, /ndvi has tiles, but none that match the filter$/],
  ] as const) {
    const { error } = await runJob(node, 'export', { layer: 'ndvi', filter: more });
    assert.equal(error?.code, 'TW_WRANGLE_EXPORT_NOTHING');
    assert.match(error.message, reason);
  }
  await node.close();
  const none = await run('predict', other.id, '--datetime', '2024-06-02');
  assert.match(
    none.stderr,
    new RegExp(`: 1 tile \\(such as ${covered.id}\\), they have no readable pixel$`, 'm'),
  );
  const both = await run(...layer);
  assert.match(both.stderr, /^warning: the image mixes 2 dates, 2024-06-01 to 2024-06-02: .*--datetime$/m);
  const one = await run(...layer, '--datetime', '2024-06-01');
  assert.deepEqual([one.code, one.stderr], [0, '']);
  const { metadata } = (await readRaster(output)).header;
  assert.equal(metadata!['LAYER'], 'ndvi');
  assert.match(metadata!['MODEL']!, new RegExp(`^${id} [^,]+$`));
  const png = await run('export', '--layer', 'ndvi', '--output', 'b.png');
  assert.equal(png.code, 2);
  assert.match(png.stderr, /must end in \.tif or \.tiff/);
});

test(
  'overviews of exported codes are codes of pixels, and those of measurements are means',
  needsGdal,
  async (t) => {
    const { folder, data } = await folderWith(t, [{ width: 600, height: 540, cloud: 40 }]);
    const node = await openData(t, data);
    for (const band of ['mask', 'where(mask == 2, 1, 0)', 'red']) {
      const output = await imageOf(node, { bands: [band] });
      const half = join(folder, 'half.tif');
      gdal('gdal_translate', '-q', '-oo', 'OVERVIEW_LEVEL=0', output, half);
      const full = await readRaster(output);
      const { header, bands } = await readRaster(half);
      const picked = bands[0]!.map((_, i) => {
        const [row, column] = [Math.floor(i / header.width), i % header.width];
        return full.bands[0]![2 * row * full.header.width + 2 * column]!;
      });
      const differing = bands[0]!.filter(
        (value, i) => !(Number.isNaN(value) && Number.isNaN(picked[i]!)) && value !== picked[i],
      ).length;
      assert.equal(differing > 0, band === 'red', `${band}: ${differing} pixels differ`);
    }
  },
);

test('an image of both sides of the antimeridian would span the globe', () => {
  const cells = ['rz', 'r8', '2p', '80', 'xb'].map((geocode) => ({
    ...{ grid: 'geohash' as const, geocode },
    size: { width: 100, height: 100 },
  }));
  assert.ok(mosaicGrid(cells).width > 3000);
  const message = exportTooLarge(1e6, 1e6, 1).message;
  assert.match(message, /each side of the antimeridian/);
});

test('cells with another number of pixels are resampled to the finest', () => {
  const names = geohash.cover({ west: 10, south: 50, east: 10.03, north: 50.08 }, 5);
  const cells = names.map((geocode, i) => ({
    ...{ grid: 'geohash' as const, geocode },
    size: { width: 30 + (i % 2), height: 40 },
  }));
  const grid = mosaicGrid(cells);
  const out = new Float32Array(grid.width * grid.height).fill(NaN);
  const image = new MosaicImage(grid, [out], NaN);
  for (const [i, cell] of cells.entries())
    image.add(cell, [new Float32Array(cell.size.width * cell.size.height).fill(i)], null);
  for (let row = 0; row < grid.height; row++)
    for (let column = 0; column < grid.width; column++) {
      const x = grid.west + (column + 0.5) * grid.pixelWidth;
      const y = grid.north - (row + 0.5) * grid.pixelHeight;
      assert.equal(out[row * grid.width + column], names.indexOf(geohash.encode(x, y, 5)));
    }
});

test('an image of several dates has the clear pixel of the least cloudy date', async (t) => {
  const folder = await tempFolder(t);
  const workers = new DerivePool(1);
  atEnd(t, () => workers.close());
  const storage = await Storage.open(join(folder, 'data'), { reserve: 0 });
  atEnd(t, () => storage.close());
  const [width, height] = [20, 15];
  const random = randomly(8);
  const codes = [Mask.nodata, Mask.clear, Mask.cloud, Mask.shadow, Mask.snow, Mask.notAssessed];
  // The last date was never assessed, and has pixels at all places.
  const weights = [
    [1, 5, 5, 1, 1, 1],
    [1, 7, 2, 1, 0, 2],
    [1, 4, 6, 1, 1, 0],
    [0, 0, 0, 0, 0, 1],
  ];
  const dates = weights.map((share, n) => {
    const drawnFrom = share.flatMap((count, c) => Array<number>(count).fill(codes[c]!));
    const mask = Uint8Array.from({ length: width * height }, (_, i) => {
      const found = drawnFrom[Math.floor(random() * drawnFrom.length)]!;
      // One corner is cloud on all dates that were assessed, and is empty on the last one.
      return i % width < 4 && i < 4 * width ? (n === 3 ? Mask.nodata : Mask.cloud) : found;
    });
    const pixels = mask.map((code, i) => (code === 0 ? 0 : 1 + ((n * 50 + i) % 250)));
    return { mask, pixels: Uint16Array.from(pixels) };
  });
  const bands = (pixels: Uint16Array) => [{ name: 'red', scale: 1, offset: 0, pixels }];
  for (const [n, { mask, pixels }] of dates.entries()) {
    const groups = [{ name: '10m', width, height, bands: bands(pixels) }];
    await storeScene(storage, { id: `s${n}`, day: n, tiles: [{ geocode: '9q8yyk', groups, mask }] });
  }
  const finder = new TileFinder(storage, localQueries(storage.index));
  const process_ = exportProcess({ storage, finder, workers });
  const results = await runDerive<ExportResults>(storage, process_, { bands: ['red'] });
  const cloud = ({ mask }: (typeof dates)[number]) => {
    const assessed = mask.filter((code) => code > 0 && code < 6);
    return assessed.length === 0 ? 2 : assessed.filter((code) => code === 2).length / assessed.length;
  };
  const ordered = dates.toSorted((a, b) => cloud(a) - cloud(b) || dates.indexOf(b) - dates.indexOf(a));
  const counts = { notClear: 0, notAssessed: 0, data: 0 };
  const expected = Array.from({ length: width * height }, (_, i) => {
    const kinds = [[Mask.clear], [Mask.notAssessed], [Mask.cloud, Mask.shadow, Mask.snow]] as number[][];
    for (const [k, kind] of kinds.entries()) {
      const date = ordered.find(({ mask }) => kind.includes(mask[i]!));
      if (!date) continue;
      counts.data++;
      if (k === 1) counts.notAssessed++;
      if (k === 2) counts.notClear++;
      return date.pixels[i]!;
    }
    return 0;
  });
  const [job] = await readdir(join(folder, 'data', 'results'));
  const { bands: found } = await readRaster(storage.results.path(job!, results.file));
  assert.deepEqual([...found[0]!], expected);
  assert.equal(results.notClear, (100 * counts.notClear) / counts.data);
  assert.equal(results.notAssessed, (100 * counts.notAssessed) / counts.data);
  assert.ok(counts.notClear > 10 && counts.notAssessed > 10);
  assert.equal(results.dates.length, 4);
});
