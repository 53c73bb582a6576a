/** Pixels of derived tiles: each function is compared with its definition. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { type CellGeoBox, geoBoxOfCell, isAligned, reprojectBands } from '../../src/derive/cut-tile.js';
import { matchGroups } from '../../src/derive/fill-tile.js';
import {
  type BandEncoding,
  conversion,
  copyPixels,
  fillFrom,
  finishedMask,
  MAX_INPUTS,
  NO_SOURCE,
  positionsOf,
  resizeNearest,
  startComposite,
  type TargetBand,
  windowOf,
} from '../../src/derive/gaps.js';
import { cellSizes, tileBytes } from '../../src/derive/split.js';
import { type GridName, gridByName, nominalSizeMetres } from '../../src/grid/index.js';
import { allocatePixels, bandValidity, type DataType, Mask } from '../../src/raster/index.js';
import type { BandRecord, GroupRecord, TileRecord } from '../../src/storage/index.js';
import { imageFile } from '../support/image-file.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

type Size = ReturnType<typeof nominalSizeMetres>;

const runs = { seed: 42, numRuns: 300 };
const CODES: number[] = [Mask.nodata, Mask.clear, Mask.cloud, Mask.shadow, Mask.snow, Mask.notAssessed];
const HOLES: number[] = [Mask.nodata, Mask.cloud, Mask.shadow, Mask.notAssessed];

const size = fc.record({ width: fc.integer({ min: 1, max: 9 }), height: fc.integer({ min: 1, max: 9 }) });

test('a splice replaces holes, cloud and shadow by clear and snow, but only holes by unassessed pixels', () => {
  // Most pixels are clear, so that runs of clear pixels occur, at any offset in memory.
  const code = fc.oneof({ weight: 3, arbitrary: fc.constant<number>(Mask.clear) }, fc.constantFrom(...CODES));
  const masks = fc
    .integer({ min: 1, max: 40 })
    .chain((length) =>
      fc.array(fc.array(code, { minLength: length, maxLength: length }), { minLength: 1, maxLength: 4 }),
    );
  fc.assert(
    fc.property(masks, ([base, ...donors]) => {
      const given = Uint8Array.from(base!);
      const splice = startComposite(given);
      const mask: number[] = [...base!];
      const provenance = mask.map((one): number => (one === Mask.nodata ? NO_SOURCE : 0));
      for (const [n, donor] of donors.entries()) {
        let taken = 0;
        for (const [i, theirs] of donor.entries()) {
          const isBetter = theirs === Mask.clear || theirs === Mask.snow;
          const gives = isBetter
            ? HOLES.includes(mask[i]!)
            : theirs === Mask.notAssessed && mask[i] === Mask.nodata;
          if (!gives) continue;
          mask[i] = theirs;
          provenance[i] = n + 1;
          taken++;
        }
        assert.equal(fillFrom(splice, Uint8Array.from(donor), n + 1), taken);
      }
      assert.deepEqual([...splice.mask], mask);
      assert.deepEqual([...splice.provenance], provenance);
      for (const one of CODES)
        assert.equal(splice.codes[one], mask.filter((other) => other === one).length, `code ${one}`);
      assert.deepEqual([...given], base, 'the base is left as it is');
      assert.deepEqual(
        [...finishedMask(splice)],
        mask.map((one, i) => (one === Mask.clear && provenance[i]! > 0 ? Mask.otherDate : one)),
      );
    }),
    runs,
  );
  assert.equal(MAX_INPUTS, 255);
});

test('a coarser group has the provenance of the fine pixels at the centres of its pixels', () => {
  fc.assert(
    fc.property(size, size, (fine, coarse) => {
      const provenance = Uint8Array.from({ length: fine.width * fine.height }, (_, i) => i);
      const found = resizeNearest(provenance, fine, coarse);
      assert.equal(found.length, coarse.width * coarse.height);
      for (const [i, number] of found.entries()) {
        const x = ((i % coarse.width) + 0.5) / coarse.width;
        const y = (Math.floor(i / coarse.width) + 0.5) / coarse.height;
        const [column, row] = [number % fine.width, Math.floor(number / fine.width)];
        assert.ok(column / fine.width <= x + 1e-9 && x < (column + 1) / fine.width + 1e-9);
        assert.ok(row / fine.height <= y + 1e-9 && y < (row + 1) / fine.height + 1e-9);
      }
    }),
    runs,
  );
});

test('positions of each input are in order, and their window is the smallest that contains them', () => {
  const image = fc.tuple(size, fc.integer({ min: 1, max: 30 })).chain(([{ width, height }, rarity]) =>
    fc.record({
      width: fc.constant(width),
      provenance: fc.array(fc.constantFrom(NO_SOURCE, 3, ...Array(rarity).fill(0)), {
        minLength: width * height,
        maxLength: width * height,
      }),
    }),
  );
  fc.assert(
    fc.property(image, ({ width, provenance }) => {
      const positions = positionsOf(Uint8Array.from(provenance));
      assert.equal(positions.length, 256);
      for (const [number, found] of positions.entries()) {
        const expected = [...provenance.keys()].filter((i) => provenance[i] === number);
        assert.deepEqual([...found], expected);
        if (expected.length === 0) continue;
        const [columns, rows] = [
          expected.map((i) => i % width),
          expected.map((i) => Math.floor(i / width)),
        ] as const;
        const [column, row] = [Math.min(...columns), Math.min(...rows)];
        assert.deepEqual(windowOf(found, width), {
          column,
          row,
          width: Math.max(...columns) - column + 1,
          height: Math.max(...rows) - row + 1,
        });
      }
    }),
    runs,
  );
});

const RANGES: [DataType, number, number][] = [
  ['uint8', 0, 255],
  ['int8', -128, 127],
  ['uint16', 0, 65535],
  ['int16', -32768, 32767],
  ['uint32', 0, 4294967295],
  ['int32', -2147483648, 2147483647],
];

test('a conversion stores the valid value nearest to the physical value', () => {
  const from: BandEncoding = { dataType: 'uint16', scale: 0.5, offset: 10, nodata: 0 };
  assert.equal(conversion(from, { ...from }), null);
  assert.equal(conversion({ ...from, nodata: NaN }, { ...from, nodata: NaN }), null);
  const to: BandEncoding[] = [
    { ...from, dataType: 'int16' },
    { ...from, scale: 2 },
    { ...from, offset: 11 },
    { ...from, nodata: 1 },
    { ...from, nodata: undefined },
  ];
  for (const other of to) assert.notEqual(conversion(from, other), null);
  // 0.5 * 8 + 10 = 14 = 0.25 * 60 - 1.
  assert.equal(conversion(from, { ...from, scale: 0.25, offset: -1 })!(8), 60);
  const float: BandEncoding = { dataType: 'float32', scale: 4, offset: 1, nodata: NaN };
  assert.equal(conversion(from, float)!(8), 3.25);
  assert.equal(conversion(from, { ...float, dataType: 'float64' })!(9), 3.375);
  for (const [dataType, low, high] of RANGES) {
    const wide: BandEncoding = { dataType: 'float64', scale: 1, offset: 0, nodata: NaN };
    const to = (nodata: number | undefined) => conversion(wide, { dataType, scale: 1, offset: 0, nodata })!;
    assert.deepEqual([low - 1e9, low, high, high + 1e9].map(to(undefined)), [low, low, high, high]);
    assert.deepEqual([7.4, 7.6].map(to(undefined)), [7, 8]);
    // A value that would equal no data is moved to the next one.
    assert.deepEqual([low - 5, low, low + 1].map(to(low)), [low + 1, low + 1, low + 1]);
    assert.deepEqual([high + 5, high, high - 1].map(to(high)), [high - 1, high - 1, high - 1]);
    assert.deepEqual([4, 5, 6].map(to(5)), [4, 4, 6]);
  }
});

test('pixels are copied where an input is needed, and are gaps where it has no data', () => {
  const image = size.chain(({ width, height }) =>
    fc.record({
      width: fc.constant(width),
      provenance: fc.array(fc.nat(1), { minLength: width * height, maxLength: width * height }),
      values: fc.array(fc.constantFrom(1, 2, 3, NaN, -9), {
        minLength: width * height,
        maxLength: width * height,
      }),
    }),
  );
  fc.assert(
    fc.property(image, fc.boolean(), fc.boolean(), ({ width, provenance, values }, converts, hadGaps) => {
      const [, positions] = positionsOf(Uint8Array.from(provenance));
      if (positions!.length === 0) return;
      const window = windowOf(positions!, width);
      const pixels = Float64Array.from({ length: window.width * window.height }, (_, i) => {
        const row = window.row + Math.floor(i / window.width);
        return values[row * width + window.column + (i % window.width)]!;
      });
      const target: TargetBand = {
        pixels: new Float64Array(values.length).fill(-1),
        valid: hadGaps ? Uint8Array.from(values, (_, i) => i % 2) : null,
        fillValue: -5,
      };
      const before = target.valid?.slice();
      const convert = converts ? (value: number) => 10 * value : null;
      const valid = bandValidity(pixels, -9);
      copyPixels(target, { positions: positions!, width }, { pixels, window, valid }, convert);
      const isHole = (value: number) => Number.isNaN(value) || value === -9;
      const expected = values.map((value, i) => {
        if (provenance[i] === 0) return -1;
        if (isHole(value)) return -5;
        return converts ? 10 * value : value;
      });
      assert.deepEqual([...target.pixels], expected);
      const holds = values.map((value, i) =>
        provenance[i] === 0 ? (before?.[i] ?? 1) : Number(!isHole(value)),
      );
      assert.deepEqual([...(target.valid ?? holds.map(() => 1))], holds);
    }),
    runs,
  );
});

const band = (name: string, commonName?: string): BandRecord => ({
  ...{ name, scale: 1, offset: 0, validPercent: 100 },
  ...(commonName !== undefined && { commonName }),
});

function group(bands: BandRecord[], more: Partial<GroupRecord> = {}): GroupRecord {
  return {
    ...{
      name: '10m',
      file: '10m',
      role: 'data',
      dataType: 'uint16',
      width: 8,
      height: 6,
      nodata: 0,
      bytes: 1,
      crc32: 1,
    },
    bands,
    ...more,
  };
}

test('bands match by name and colour, otherwise as the only bands of their colour', () => {
  const match = (own: BandRecord[], others: BandRecord[], mine = {}, theirs = {}) =>
    matchGroups({ groups: [group(own, mine)] }, { groups: [group(others, theirs)] })?.map(
      ({ bands }) => bands,
    ) ?? null;
  const [red, nir] = [band('B4', 'red'), band('B8', 'nir')];
  assert.deepEqual(match([red, nir], [nir, red]), [[1, 0]]);
  assert.deepEqual(match([band('B4', 'red')], [band('B3', 'red'), band('B4', 'green')]), [[0]]);
  assert.equal(match([red], [band('B4', 'green')]), null);
  assert.equal(match([red], [band('B4')]), null);
  // Without a colour, only the name counts.
  assert.deepEqual(match([band('x')], [band('y'), band('x')]), [[1]]);
  assert.equal(match([band('x')], [band('y')]), null);
  // Two bands of one colour on both sides are distinguished only by their names.
  const edges = [band('B5', 'rededge'), band('B6', 'rededge')];
  assert.deepEqual(match(edges, [...edges].reverse()), [[1, 0]]);
  assert.equal(match([band('B7', 'rededge')], edges), null);
  assert.equal(match(edges, [band('B5', 'rededge')]), null);
  // An equal name takes precedence, even if another band has the same colour.
  assert.deepEqual(match([edges[1]!], edges), [[1]]);
  assert.equal(match([red], [red], {}, { width: 9 }), null);
  assert.equal(match([red], [red], {}, { height: 9 }), null);
  assert.equal(match([red], [red], {}, { role: 'qa' }), null);
  // Measurements are converted, codes are not.
  assert.deepEqual(match([red], [red], {}, { dataType: 'int16' }), [[0]]);
  assert.equal(match([red], [red], { role: 'qa' }, { role: 'qa', dataType: 'int16' }), null);
  assert.deepEqual(match([red], [red], { role: 'qa' }, { role: 'qa' }), [[0]]);
  assert.equal(match([red], [red], { codes: true }, {}), null);
  assert.equal(match([red], [red], { codes: true }, { codes: true, dataType: 'uint8' }), null);
  assert.deepEqual(match([red], [red], { codes: true }, { codes: true }), [[0]]);
  assert.equal(match([red], [red], { role: 'qa' }, { role: 'qa', codes: true }), null);
});

test('every group except the mask matches the first group that has its bands', () => {
  const mask = group([band('mask')], { name: 'mask', role: 'mask' });
  const [red, green] = [group([band('r', 'red')]), group([band('g', 'green')], { name: 'other' })];
  const found = matchGroups({ groups: [mask, green, red] }, { groups: [red, green] });
  assert.deepEqual(
    found?.map(({ group: one }) => one),
    [green, red],
  );
  assert.equal(matchGroups({ groups: [red, green] }, { groups: [red, mask] }), null);
  assert.deepEqual(matchGroups({ groups: [mask] }, { groups: [] }), []);
});

function tile(grid: GridName, geocode: string, ...sizes: [width: number, height: number][]) {
  return { grid, geocode, groups: sizes.map(([width, height]) => ({ width, height })) };
}
const cell = (grid: GridName, geocode: string): Pick<TileRecord, 'grid' | 'geocode'> => ({ grid, geocode });

test('groups of another cell have the same pixels if these nest, otherwise the nominal pixel size', () => {
  const quads = tile('quadtile', '0231', [64, 32], [16, 8]);
  const sizes = (width: number, height: number) => ({ width, height });
  assert.deepEqual(cellSizes(cell('quadtile', '02310'), [quads]), [sizes(32, 16), sizes(8, 4)]);
  assert.deepEqual(cellSizes(cell('quadtile', '023'), [quads, quads]), [sizes(128, 64), sizes(32, 16)]);
  // Geohash: a cell contains 8 x 4 cells of the next precision if that is odd.
  const hashes = tile('geohash', '9q8yy', [800, 400]);
  assert.deepEqual(cellSizes(cell('geohash', '9q8y'), [hashes]), [sizes(8 * 800, 4 * 400)]);
  assert.deepEqual(cellSizes(cell('geohash', '9q8yyk'), [hashes]), [sizes(200, 50)]);

  // Other sizes are derived from the pixel size of the first tile, to three digits.
  const nominal = ({ grid, geocode, groups: [first] }: ReturnType<typeof tile>, to: string) => {
    const [from, there] = [geocode, to].map((one) => nominalSizeMetres(gridByName(grid), one)) as [
      Size,
      Size,
    ];
    const digits = (metres: number) => Number(metres.toPrecision(3));
    return sizes(
      Math.round(there.width / digits(from.width / first!.width)),
      Math.round(there.height / digits(from.height / first!.height)),
    );
  };
  const odd = tile('geohash', '9q8yy', [487, 489]);
  const expected = nominal(odd, '9q8yyk');
  assert.deepEqual(cellSizes(cell('geohash', '9q8yyk'), [odd]), [expected]);
  // Only one side may nest.
  assert.deepEqual(cellSizes(cell('geohash', '9q8yyk'), [tile('geohash', '9q8yy', [488, 489])]), [
    nominal(tile('geohash', '9q8yy', [488, 489]), '9q8yyk'),
  ]);
  assert.deepEqual(cellSizes(cell('geohash', '9q8yyk'), [tile('geohash', '9q8yy', [489, 488])]), [
    nominal(tile('geohash', '9q8yy', [489, 488]), '9q8yyk'),
  ]);
  // All groups must nest.
  const mixed = cellSizes(cell('geohash', '9q8yyk'), [tile('geohash', '9q8yy', [800, 400], [487, 489])]);
  assert.deepEqual(mixed[1], nominal(odd, '9q8yyk'));
  for (const other of [
    tile('geohash', '9q8yyk', [800, 400]),
    tile('geohash', '9q8yv', [801, 400]),
    tile('geohash', '9q8yv', [800, 401]),
    tile('geohash', '9q8yv', [800, 400], [1, 1]),
    tile('quadtile', '02310', [800, 400]),
  ]) {
    const first = tile('geohash', '9q8yy', [800, 400]);
    assert.deepEqual(cellSizes(cell('geohash', '9q8y'), [first, other]), [nominal(first, '9q8y')]);
  }
});

test('the bytes of a tile include all bands of all groups', () => {
  const groups = [
    group([band('a'), band('b')], { dataType: 'uint16' }),
    group([band('c')], { dataType: 'float64' }),
    group([band('m')], { dataType: 'uint8' }),
  ];
  const sizes = [
    { width: 10, height: 3 },
    { width: 5, height: 2 },
    { width: 7, height: 7 },
  ];
  assert.equal(tileBytes(groups, sizes), 10 * 3 * 2 * 2 + 5 * 2 * 8 + 49);
});

const at = (west: number, north: number, pixel: number, width: number, height: number): CellGeoBox => ({
  grid: 'geohash',
  bounds: { west, north, east: west + width * pixel, south: north - height * pixel },
  width,
  height,
});

test('pixels are aligned if size and shift are integers of pixels in both directions', () => {
  const target = at(2, 7, 0.25, 8, 6);
  assert.ok(isAligned(target, target));
  assert.ok(isAligned(target, at(2.5, 6.25, 0.25, 3, 2)));
  assert.ok(isAligned(target, at(2.5 + 1e-9, 6.25, 0.25, 3, 2)));
  assert.ok(isAligned(at(2.125, 7.125, 0.25, 8, 6), at(2.875, 6.625, 0.25, 3, 2)));
  assert.ok(!isAligned(target, { ...target, grid: 'quadtile' }));
  assert.ok(!isAligned(target, at(2.1, 7, 0.25, 8, 6)));
  assert.ok(!isAligned(target, at(2, 7.1, 0.25, 8, 6)));
  assert.ok(!isAligned(target, { ...target, width: 9 }));
  assert.ok(!isAligned(target, { ...target, width: 7 }));
  assert.ok(!isAligned(target, { ...target, height: 5 }));
  assert.ok(!isAligned(target, { ...target, height: 7 }));
  const cells = ['9q8yy', '9q8yyk'].map((geocode, i) =>
    geoBoxOfCell(
      'geohash',
      geocode,
      [
        { width: 64, height: 32 },
        { width: 16, height: 4 },
      ][i]!,
    ),
  );
  assert.deepEqual(cells[0]!.bounds, gridByName('geohash').bounds('9q8yy'));
  assert.deepEqual([cells[1]!.width, cells[1]!.height], [16, 4]);
  assert.ok(isAligned(cells[0]!, cells[1]!) && isAligned(cells[1]!, cells[0]!));
});

test('resampled pixels are copies if they are aligned, otherwise nearest or bilinear values', async (t) => {
  const [width, height] = [24, 18];
  const value = (column: number, row: number, b: number) => 100 + 3 * column + 50 * row + 7 * b;
  const path = await writeRaster(join(await tempFolder(t), 'a.tif'), {
    ...{ width, height, nodata: 0, dataType: 'float32' },
    bands: [0, 1].map((b) =>
      Float32Array.from({ length: width * height }, (_, i) => value(i % width, Math.floor(i / width), b)),
    ),
  });
  const stored = { ...imageFile(path), nodata: 0, dataType: 'float32' as const };
  const from = at(2, 7, 0.25, width, height);
  for (const [to, method, numbers] of [
    [at(3, 6, 0.25, 5, 4), 'bilinear', [0, 1]],
    [at(3.03, 5.96, 0.25, 5, 4), 'bilinear', [1]],
    [at(3.03, 5.96, 0.25, 5, 4), 'nearest', [1, 0]],
    [at(1, 8, 0.25, 8, 8), 'nearest', [0]],
    [at(6.5, 3.5, 0.3, 6, 6), 'nearest', [0]],
    [at(3, 5, 0.07, 12, 9), 'bilinear', [1]],
    [at(-50, -20, 0.25, 3, 3), 'nearest', [0, 1]],
    [at(50, 70, 0.25, 3, 3), 'bilinear', [1]],
    [at(50, -70, 0.25, 3, 3), 'nearest', [0]],
  ] as [CellGeoBox, 'nearest' | 'bilinear', number[]][]) {
    const { bands, valid } = await reprojectBands(stored, numbers, from, to, method);
    for (const [n, b] of numbers.entries())
      for (let i = 0; i < to.width * to.height; i++) {
        const pixel = (to.bounds.east - to.bounds.west) / to.width;
        const x = (to.bounds.west + ((i % to.width) + 0.5) * pixel - 2) / 0.25;
        const y = (7 - to.bounds.north + (Math.floor(i / to.width) + 0.5) * pixel) / 0.25;
        const isInside = x >= 0 && y >= 0 && x < width && y < height;
        assert.equal(valid[n]![i], isInside ? 1 : 0, `pixel ${i}`);
        if (!isInside) continue;
        const expected =
          method === 'nearest' ? value(Math.floor(x), Math.floor(y), b) : value(x - 0.5, y - 0.5, b);
        assert.ok(
          Math.abs(bands[n]![i]! - expected) < 1e-3,
          `pixel ${i}: ${bands[n]![i]} is not ${expected}`,
        );
      }
  }
});

test('the stored no data value stays no data after resampling, and another grid is read through its projection', async (t) => {
  const path = await writeRaster(join(await tempFolder(t), 'a.tif'), {
    ...{ width: 16, height: 16, nodata: 5, dataType: 'uint8' },
    bands: [Uint8Array.from({ length: 256 }, (_, i) => (i === 17 ? 5 : 10 + (i % 16)))],
  });
  const stored = { ...imageFile(path), nodata: 5, dataType: 'uint8' as const };
  const target = at(10, 40, 0.25, 16, 16);
  const { valid, bands } = await reprojectBands(stored, [0], target, target, 'bilinear');
  assert.deepEqual(
    [...valid[0]!.keys()].filter((i) => valid[0]![i] === 0),
    [17],
  );
  assert.equal(bands[0]!.constructor, allocatePixels('uint8', 1).constructor);

  const { fromLonLat } = gridByName('quadtile');
  const [[west, south], [east, north]] = [fromLonLat(11, 37), fromLonLat(13, 39)];
  const to: CellGeoBox = {
    grid: 'quadtile',
    bounds: { west: west!, south: south!, east: east!, north: north! },
    width: 8,
    height: 8,
  };
  const warped = await reprojectBands({ ...stored, nodata: null }, [0], target, to, 'nearest');
  for (let i = 0; i < 64; i++) {
    const column = Math.floor((11 + (((i % 8) + 0.5) / 8) * 2 - 10) / 0.25);
    assert.equal(warped.bands[0]![i], 10 + column, `pixel ${i}`);
    assert.equal(warped.valid[0]![i], 1);
  }
});
