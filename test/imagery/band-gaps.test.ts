/**
 * A tile whose bands lack data at different pixels, sent through every reader of tiles: a band, an expression or a spectrum is missing
 * where its own bands are, and nowhere else.
 */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DeriveResults, ExportResults, TensorResults } from '../../src/derive/index.js';
import type { GridName } from '../../src/grid/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { type DataType, gdalName, Mask, readImage, readRaster } from '../../src/raster/index.js';
import type { TileRecord } from '../../src/storage/index.js';
import { readAcquisitions } from '../../src/training/acquisitions.js';
import { acquisitionFiles } from '../../src/training/cells.js';
import { gdal, needsGdal } from '../raster/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { runProcess } from '../support/process.js';
import { writeRaster } from '../support/rasters.js';
import { runJob } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';
import { mapTileAt, pictureOf } from './maps.js';

const NAMES = ['blue', 'green', 'red', 'nir', 'swir16', 'swir22'];
const [WIDTH, HEIGHT] = [160, 112];

/** How a scene without a value in some band marks this. */
interface Marking {
  name: string;
  dataType: DataType;
  nodata?: number;
  /** True for a mask of each band in the file. */
  masks?: boolean;
  grid: GridName;
}

const MARKINGS: Marking[] = [
  { name: 'a nodata value', dataType: 'uint16', nodata: 0, grid: 'geohash' },
  { name: 'NaN', dataType: 'float32', grid: 'quadtile' },
  { name: 'a mask of each band', dataType: 'uint8', masks: true, grid: 'geohash' },
];

/** Band b lacks stripe b, and all bands lack stripe 7. */
const lacks = (band: number, i: number) => {
  const stripe = Math.floor((8 * (i % WIDTH)) / WIDTH);
  return stripe === band || stripe === 7;
};

const LEVELS = [40, 60, 70, 180, 120, 80];

async function writeStripes(path: string, { dataType, nodata, masks }: Marking, shift = 0): Promise<string> {
  const size = WIDTH * HEIGHT;
  const valid = NAMES.map((_, b) =>
    Uint8Array.from({ length: size }, (_, i) => Number(!lacks(b, i + shift))),
  );
  const hole = masks ? 0 : (nodata ?? NaN);
  const make = { uint16: Uint16Array, float32: Float32Array, uint8: Uint8Array }[dataType as 'uint8'];
  const bands = NAMES.map((_, b) =>
    make.from({ length: size }, (_, i) => (valid[b]![i] === 1 ? LEVELS[b]! + ((i * 7) % 23) : hole)),
  );
  return writeRaster(path, {
    ...{ width: WIDTH, height: HEIGHT, dataType, bands },
    ...(nodata !== undefined && { nodata }),
    ...(dataType === 'float32' && { nodata: NaN }),
    ...(masks && { masks: valid }),
    bandTags: NAMES.map((description) => ({ description })),
  });
}

const inputs = (grid: GridName) => ({
  collection: 'stripes',
  scale: 0.004,
  grid,
  precision: grid === 'geohash' ? 6 : 15,
});

/** The pixels of a tile by the oracle: each band of the stored file in its own image, with its own mask, by GDAL. */
async function gdalBands(node: TilewrightNode, tile: TileRecord, folder: string) {
  const group = tile.groups.find(({ role }) => role === 'data')!;
  const path = gdalName(node.storage.tileImage(tile, group.name));
  return Promise.all(
    group.bands.map(async (_, b) => {
      const [values, valid] = ['values', 'valid'].map((name) =>
        join(folder, `${tile.geocode}-${b}-${name}.tif`),
      );
      gdal('gdal_translate', '-q', '-b', `${b + 1}`, '-a_nodata', 'none', '-mask', 'none', path, values!);
      gdal('gdal_translate', '-q', '-b', `mask,${b + 1}`, path, valid!);
      const stored = (await readRaster(values!)).bands[0]!;
      const marks = (await readRaster(valid!)).bands[0]!;
      return Array.from(stored, (value, i) => (marks[i] === 0 || Number.isNaN(value) ? NaN : value * 0.004));
    }),
  );
}

/** The same by our own reader, for tiles that the raw tiles make. */
async function bandsOf(node: TilewrightNode, tile: TileRecord) {
  const group = tile.groups.find(({ role }) => role === 'data')!;
  const { bands, valid } = await readImage(node.storage.tileImage(tile, group.name));
  return bands.map((band, b) => Array.from(band, (value, i) => (valid[b]?.[i] === 0 ? NaN : value * 0.004)));
}

const near = (a: number, b: number) => (Number.isNaN(b) ? Number.isNaN(a) : Math.abs(a - b) < 1e-5);

function assertNear(found: ArrayLike<number>, expected: number[], what: string): void {
  assert.equal(found.length, expected.length, what);
  const wrong = expected.findIndex((value, i) => !near(found[i]!, value));
  assert.equal(wrong, -1, `${what}, pixel ${wrong}: ${found[wrong]} is not ${expected[wrong]}`);
}

const EXPRESSIONS: [text: string, of: (bands: number[]) => number][] = [
  ['red', ([, , red]) => red!],
  ['(nir-red)/(nir+red)', ([, , red, nir]) => (nir! - red!) / (nir! + red!)],
  ['where(green > 0, 1, blue)', ([blue, green]) => (Number.isNaN(blue! + green!) ? NaN : 1)],
  ['red ** 0', ([, , red]) => (Number.isNaN(red!) ? NaN : 1)],
];

for (const marking of MARKINGS)
  test(`bands whose gaps differ, marked by ${marking.name}`, needsGdal, async (t) => {
    const { grid } = marking;
    const folder = await tempFolder(t);
    const node = await testNode(t, join(folder, 'data'));
    const path = await writeStripes(join(folder, 'stripes.tif'), marking);
    const { failed } = await ingest(node, { ...inputs(grid), href: path, datetime: '2024-06-01', id: 'a' });
    assert.deepEqual(failed, []);
    const raw = await tilesOf(node);
    assert.ok(raw.length >= 2);
    const expected = new Map<string, number[][]>();
    for (const tile of raw) expected.set(tile.id, await gdalBands(node, tile, folder));
    const pixelsOf = (tile: TileRecord) => {
      const bands = expected.get(tile.id)!;
      return bands[0]!.map((_, i) => bands.map((band) => band[i]!));
    };
    const groupOf = (tile: TileRecord) => tile.groups.find(({ role }) => role === 'data')!;

    await t.test('the mask, the coverage and the share of each band', async () => {
      for (const tile of raw) {
        const pixels = pixelsOf(tile);
        const share = (holds: (pixel: number[]) => boolean) =>
          (100 * pixels.filter(holds).length) / pixels.length;
        const mask = (await readImage(node.storage.tileImage(tile, 'mask'))).bands[0]!;
        for (const [i, pixel] of pixels.entries())
          assert.equal(mask[i], pixel.every(Number.isNaN) ? Mask.nodata : Mask.notAssessed);
        assert.equal(
          tile.coverage,
          share((pixel) => !pixel.some(Number.isNaN)),
        );
        const { features } = (await node.server.inject(`/search?ids=${tile.id}`)).json();
        const item = features[0];
        for (const [b] of NAMES.entries()) {
          const stated = item.assets[groupOf(tile).name]['raster:bands'][b].statistics.valid_percent;
          assert.ok(Math.abs(stated - share((pixel) => !Number.isNaN(pixel[b]!))) < 0.01);
        }
      }
    });

    await t.test('previews and mosaics', async () => {
      for (const tile of raw.slice(0, 2)) {
        const { width, height } = groupOf(tile);
        for (const [b, band] of NAMES.entries()) {
          const shown = await pictureOf(node, `/preview/${tile.id}.png?assets=${band}&rescale=0,1`);
          assert.deepEqual([shown.width, shown.height], [width, height]);
          for (const [i, pixel] of pixelsOf(tile).entries())
            assert.equal(shown.pixels[4 * i + 3], Number.isNaN(pixel[b]!) ? 0 : 255, `${band}, pixel ${i}`);
        }
      }
      const shown: Record<string, number[]> = {};
      const { z, x, y } = mapTileAt(14, 15.01, 47.847);
      for (const pixel_selection of ['first', 'median'])
        for (const band of NAMES) {
          const look = `assets=${band}&rescale=0,1&resampling=nearest&pixel_selection=${pixel_selection}`;
          const { pixels } = await pictureOf(node, `/xyz/stripes/${z}/${x}/${y}.png?${look}`);
          const opaque = pixels.filter((value, i) => i % 4 === 3 && value > 0).length;
          shown[band] = [...(shown[band] ?? []), opaque];
        }
      for (const [band, [first, median]] of Object.entries(shown)) {
        assert.equal(first, median, band);
        // The map shows a part of the scene, in which six of eight stripes of each band hold data.
        const most = Math.max(...Object.values(shown).flat());
        assert.ok(first! > 0.7 * most, `${band} shows ${first} of ${most} pixels`);
      }
    });

    await t.test('series of a zone', async () => {
      for (const [text, of] of EXPRESSIONS) {
        const geometry = {
          type: 'Polygon',
          coordinates: [
            [
              [14.99, 47.8],
              [15.06, 47.8],
              [15.06, 47.9],
              [14.99, 47.9],
              [14.99, 47.8],
            ],
          ],
        };
        const answer = await node.server.inject({
          method: 'POST',
          url: '/timeseries',
          payload: { geometry, expression: text },
        });
        assert.equal(answer.statusCode, 200, answer.body);
        const [date] = answer.json().series;
        const values = raw.flatMap((tile) => pixelsOf(tile).map(of)).filter((value) => !Number.isNaN(value));
        assert.equal(date.valid, values.length, text);
        assert.ok(near(date.mean, values.reduce((sum, value) => sum + value, 0) / values.length), text);
      }
    });

    await t.test('tensors and exported images', async () => {
      const bands = EXPRESSIONS.map(([text]) => text);
      const { id, results } = await runJob<TensorResults>(node, 'tensor', { bands });
      assert.equal(results.files.length, raw.length);
      for (const tile of raw) {
        const file = results.files.find(({ geocode }) => geocode === tile.geocode)!;
        const { rawPayload } = await node.server.inject(`/jobs/${id}/results/files/${file.name}`);
        const size = file.shape[2] * file.shape[3];
        const values = new Float32Array(
          Uint8Array.from(rawPayload.subarray(-4 * size * bands.length)).buffer,
        );
        for (const [p, [text, of]] of EXPRESSIONS.entries())
          assertNear(values.subarray(p * size, (p + 1) * size), pixelsOf(tile).map(of), `tensor of ${text}`);
      }
      const stored = await runJob<TensorResults>(node, 'tensor', { bands: NAMES, stored: true });
      // A gap would be a 0, like a measured 0.
      if (marking.masks) assert.equal(stored.error?.code, 'TW_WRANGLE_STORED_GAPS');
      else
        for (const { geocode, name, nodata, shape } of stored.results.files) {
          const tile = raw.find((one) => one.geocode === geocode)!;
          const { rawPayload } = await node.server.inject(`/jobs/${stored.id}/results/files/${name}`);
          const make = marking.dataType === 'uint16' ? Uint16Array : Float32Array;
          const size = shape[1] * shape[2] * shape[3];
          const bytes = Uint8Array.from(rawPayload.subarray(-size * make.BYTES_PER_ELEMENT));
          const values = Array.from(new make(bytes.buffer), (value) =>
            value === nodata ? NaN : value * 0.004,
          );
          assertNear(values, expected.get(tile.id)!.flat(), 'stored numbers');
        }
      for (const tile of raw) {
        const inputs = { bands: NAMES, filter: { geocode: tile.geocode } };
        const exported = await runJob<ExportResults>(node, 'export', inputs);
        const path = join(folder, 'image.tif');
        const address = `/jobs/${exported.id}/results/files/${exported.results.file}`;
        await writeFile(path, (await node.server.inject(address)).rawPayload);
        const image = await readRaster(path);
        for (const [b, stored] of image.bands.entries()) {
          const { scale = 1 } = image.header.bandTags[b]!;
          const values = Array.from(stored, (value, i) => (image.valid[b]?.[i] === 0 ? NaN : value * scale));
          assertNear(values, expected.get(tile.id)![b]!, `exported ${NAMES[b]}`);
        }
      }
      const { error } = await runJob<ExportResults>(node, 'export', { bands: ['log(0 - red)'] });
      assert.equal(error?.code, 'TW_WRANGLE_EXPORT_NOTHING');
    });

    await t.test('files of single bands', async () => {
      const [tile] = raw;
      for (const [b, name] of NAMES.entries()) {
        const { name: group, bands } = groupOf(tile!);
        assert.equal(bands[b]!.commonName ?? bands[b]!.name, name);
        const answer = await node.server.inject(`/tiles/${tile!.id}/${group}/${bands[b]!.name}.tif`);
        assert.equal(answer.statusCode, 200);
        const file = join(folder, `${name}.tif`);
        await writeFile(file, answer.rawPayload);
        const { bands: values, valid } = await readRaster(file);
        const stored = Array.from(values[0]!, (value, i) => (valid[0]?.[i] === 0 ? NaN : value * 0.004));
        assertNear(stored, expected.get(tile!.id)![b]!, name);
      }
    });

    await t.test('training reads bands with gaps of their own', async () => {
      for (const tile of raw) {
        const read = await readAcquisitions([acquisitionFiles(node.storage, ['red', 'nir'], tile)!]);
        assert.ok('dates' in read);
        const [date] = read.dates;
        assertNear(date!.bands.red!, expected.get(tile.id)![2]!, 'red');
        assertNear(date!.bands.nir!, expected.get(tile.id)![3]!, 'nir');
      }
    });

    await t.test('split and coalesced tiles', async () => {
      const { precision } = inputs(grid);
      await runProcess<DeriveResults>(node, 'split', { precision: precision + 1 });
      const children = (await tilesOf(node)).filter(({ source }) => source === 'split');
      assert.ok(children.length > raw.length);
      const count = (tiles: number[][][]) =>
        NAMES.map((_, b) =>
          tiles.reduce((sum, bands) => sum + bands[b]!.filter((value) => !Number.isNaN(value)).length, 0),
        );
      const made = await Promise.all(children.map((tile) => bandsOf(node, tile)));
      const [before, after] = [count([...expected.values()]), count(made)];
      for (const [b, name] of NAMES.entries())
        assert.ok(Math.abs(after[b]! / before[b]! - 1) < 0.06, `${name}: ${before[b]} and ${after[b]}`);
      const places = await writeRaster(join(folder, 'places.tif'), { width: WIDTH, height: HEIGHT });
      const wider = { ...inputs(grid), collection: 'places', precision: precision - 1 };
      await ingest(node, { ...wider, href: places, datetime: '2024-06-01' });
      const filter = { collections: ['stripes'] };
      await runProcess<DeriveResults>(node, 'coalesce', { filter, to: 'places' });
      const wide = (await tilesOf(node)).filter(({ source }) => source === 'coalesced');
      assert.ok(wide.length > 0);
      const joined = count(await Promise.all(wide.map((tile) => bandsOf(node, tile))));
      for (const [b, name] of NAMES.entries())
        assert.ok(Math.abs(joined[b]! / before[b]! - 1) < 0.06, `${name}: ${before[b]} and ${joined[b]}`);
    });

    await t.test('fill closes gaps by band', async () => {
      // Stripes are one further to the west, so that another band lacks each of them.
      const other = await writeStripes(join(folder, 'shifted.tif'), marking, WIDTH / 8);
      await ingest(node, { ...inputs(grid), href: other, datetime: '2024-06-03', id: 'b' });
      await runProcess<DeriveResults>(node, 'fill', { filter: { collections: ['stripes'] } });
      const filled = (await tilesOf(node)).filter(({ source }) => source === 'filled');
      assert.ok(filled.length > 0);
      for (const tile of filled) {
        const base = raw.find(({ id }) => id === tile.derivedFrom[0]);
        const made = await bandsOf(node, tile);
        const inputTiles = (await tilesOf(node)).filter(({ id }) => tile.derivedFrom.includes(id));
        const given = await Promise.all(inputTiles.map((input) => bandsOf(node, input)));
        for (const [b, band] of made.entries())
          for (const [i, value] of band.entries()) {
            const values = given.map((bands) => bands[b]![i]!).filter((one) => !Number.isNaN(one));
            assert.equal(Number.isNaN(value), values.length === 0, `${NAMES[b]}, pixel ${i}`);
            assert.ok(values.length === 0 || values.some((one) => near(value, one)));
            const own = base && expected.get(base.id)![b]![i]!;
            if (own !== undefined && !Number.isNaN(own))
              assert.ok(near(value, own), 'data of the base stays');
          }
      }
    });

    await t.test('the cloud test leaves pixels that lack a band not assessed', async () => {
      const tested = { ...inputs(grid), collection: `tested`, cloudTest: true };
      const path = await writeStripes(join(folder, 'tested.tif'), marking);
      const { failed } = await ingest(node, { ...tested, href: path, datetime: '2024-06-01', id: 'c' });
      assert.deepEqual(failed, []);
      const tiles = (await tilesOf(node)).filter(({ collection }) => collection === `tested`);
      const codes = new Set<number>();
      for (const tile of tiles) {
        const bands = await bandsOf(node, tile);
        const mask = (await readImage(node.storage.tileImage(tile, 'mask'))).bands[0]!;
        for (const [i, code] of mask.entries()) {
          codes.add(code);
          const gaps = bands.filter((band) => Number.isNaN(band[i]!)).length;
          // Cloud is found in pixels of about 30 m, so the edge of a gap has the code of the pixels beside it.
          const column = i % groupOf(tile).width;
          const isInside =
            column >= 4 &&
            column < groupOf(tile).width - 4 &&
            bands.some((band) => [-4, 0, 4].every((by) => Number.isNaN(band[i + by]!)));
          if (gaps === bands.length) assert.equal(code, Mask.nodata);
          else if (gaps > 0 && isInside) assert.equal(code, Mask.notAssessed);
          else assert.notEqual(code, Mask.nodata);
        }
      }
      assert.ok(codes.has(Mask.notAssessed) && codes.has(Mask.nodata) && codes.size > 2);
    });
  });
