/** Loops over pixels, types and positions of pixels, each against a plain statement of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isInvertible } from '../../src/raster/crs/crs.js';
import {
  allocatePixels,
  buildControlGrid,
  DATA_TYPES,
  type DataType,
  findValidityBand,
  mapToPixel,
  type PixelArray,
  pixelToMap,
  type RasterHeader,
  sliceRows,
  warp,
  warpMasked,
} from '../../src/raster/index.js';
import {
  bytesPerSample,
  bytesPerStored,
  dataTypeOf,
  fillValueFor,
  isFloat,
  minValue,
  nodataAsType,
  nodataReplacementFor,
  parseNodata,
  readStoredNumbers,
  swapBytes,
  UNSIGNED_BY_SIZE,
} from '../../src/raster/pixels/data-types.js';
import { typedKernels } from '../../src/raster/pixels/masks.js';
import { buildOverviews, type OverviewResampling } from '../../src/raster/write/overviews.js';
import { random } from './images.js';

const runs = { seed: 42, numRuns: 150 };
const size = fc.record({ width: fc.integer({ min: 1, max: 9 }), height: fc.integer({ min: 1, max: 7 }) });

/** Small numbers, many of them equal to each other and to the nodata value. */
function someOf(dataType: DataType, length: number, seed: number): PixelArray {
  const next = random(seed);
  const values = allocatePixels(dataType, length).map(() => Math.floor(6 * next()));
  return isFloat(dataType) ? values.map((value) => (next() < 0.1 ? NaN : value + 0.25)) : values;
}

/** The pixels of an image that a pixel of its half is made of. */
function quarter(width: number, height: number, column: number, row: number): number[] {
  const found: number[] = [];
  for (const y of [2 * row, 2 * row + 1])
    for (const x of [2 * column, 2 * column + 1]) if (x < width && y < height) found.push(y * width + x);
  return found;
}

/** The mean of pixels: integers are rounded half up. */
function meanOf(values: number[], dataType: DataType): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return isFloat(dataType) ? Math.fround(mean) : Math.floor(mean + 0.5);
}

const isNear = (a: number, b: number) => Object.is(a, b) || Math.abs(a - b) < 1e-5;

for (const resampling of ['mean', 'nearest'] as OverviewResampling[])
  test(`overviews by ${resampling} are computed from the pixels of the previous level`, () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...DATA_TYPES),
        size,
        fc.constantFrom(undefined, 0, 3, -9999),
        fc.boolean(),
        fc.nat(1e6),
        (dataType, { width, height }, nodata, masked, seed) => {
          const bands = [0, 1].map((b) => someOf(dataType, width * height, seed + b));
          if (masked)
            for (const band of bands)
              for (const [i, value] of band.entries()) if (Number.isNaN(value)) band[i] = 1;
          const next = random(seed);
          const ofEach = next() < 0.5;
          const draw = (band: PixelArray) => Uint8Array.from(band, () => (next() < 0.7 ? 0 : 255));
          const masks = masked ? bands.slice(0, ofEach ? 2 : 1).map(draw) : undefined;
          const levels = buildOverviews(
            { width, height, bands, masks },
            dataType,
            masked ? undefined : nodata,
            resampling,
            { largest: 2, picture: 2 },
          );
          assert.ok(levels.at(-1)!.width <= 2 && levels.at(-1)!.height <= 2);
          const hole = masked ? undefined : nodataAsType(dataType, nodata);
          for (const [n, level] of levels.slice(1).entries()) {
            const before = levels[n]!;
            assert.ok(before.width > 2 || before.height > 2);
            assert.deepEqual(
              [level.width, level.height],
              [Math.ceil(before.width / 2), Math.ceil(before.height / 2)],
            );
            for (let i = 0; i < level.width * level.height; i++) {
              const own = quarter(before.width, before.height, i % level.width, Math.floor(i / level.width));
              const pixels = resampling === 'nearest' ? own.slice(0, 1) : own;
              for (const [b, band] of level.bands.entries()) {
                const mask = before.masks?.[ofEach ? b : 0];
                const made = level.masks?.[ofEach ? b : 0];
                assert.equal(
                  made ? made[i] !== 0 : true,
                  pixels.some((pixel) => mask?.[pixel] !== 0),
                );
                if (made) assert.equal(made.length, level.width * level.height);
                assert.equal(band.length, level.width * level.height);
                const values = pixels
                  .filter((pixel) => resampling === 'nearest' || mask?.[pixel] !== 0)
                  .map((pixel) => before.bands[b]![pixel]!);
                if (resampling === 'nearest') {
                  assert.ok(Object.is(band[i], values[0]));
                  continue;
                }
                const data = values.filter((value) => value !== hole && !Number.isNaN(value));
                const empty = masked ? 0 : fillValueFor(dataType, nodata);
                const mean = data.length === 0 ? empty : meanOf(data, dataType);
                const isHole = data.length > 0 && hole !== undefined && mean === hole;
                const expected = isHole ? nodataReplacementFor(dataType, hole) : mean;
                assert.ok(
                  isNear(band[i]!, expected),
                  `level ${n + 1}, pixel ${i}: ${band[i]} is not ${expected}`,
                );
              }
            }
          }
          if (!masked) assert.ok(levels.every((level) => level.masks === undefined));
        },
      ),
      runs,
    );
  });

test('samples are extracted, valid pixels copied and wide ones narrowed', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...DATA_TYPES),
      size,
      fc.nat(3),
      fc.nat(1e6),
      (dataType, { width, height }, more, seed) => {
        const kernel = typedKernels[dataType];
        const stride = width + more;
        const source = someOf(dataType, 2 + stride * height, seed);
        const picked = allocatePixels(dataType, height + 2);
        kernel.deinterleave(source, 1, stride, picked, 2, height);
        assert.deepEqual(
          [...picked],
          [0, 0, ...Array.from({ length: height }, (_, i) => source[1 + i * stride]!)],
        );

        const validity = Uint8Array.from(someOf('uint8', source.length, seed + 1), (value) => value % 2);
        const wide = allocatePixels('float64', width * height);
        kernel.applyValidity(source, validity, 2, stride, width, height, wide, -7);
        const expected = Array.from(wide, (_, i) => {
          const at = 2 + Math.floor(i / width) * stride + (i % width);
          return validity[at] === 0 ? -7 : source[at]!;
        });
        assert.deepEqual([...wide], expected);

        const given = expected.map((value, i) => (i % 5 === 0 ? value + 0.5 : value));
        const narrowed = new Int16Array(given.length);
        kernel.roundToType(Float64Array.from(given), -7, narrowed, 99);
        assert.deepEqual(
          [...narrowed],
          given.map((value) => (value === -7 || Number.isNaN(value) ? 99 : Math.floor(value + 0.5))),
        );
      },
    ),
    runs,
  );
});

test('differences along rows are reverted', () => {
  fc.assert(
    fc.property(size, fc.integer({ min: 1, max: 4 }), fc.nat(1e6), ({ width, height }, samples, seed) => {
      const { horizontalSums } = typedKernels.uint16;
      const next = random(seed);
      const pixels = Uint16Array.from({ length: width * height }, () => Math.floor(65536 * next()));
      const differences = pixels.map((value, i) => value - (i % width > 0 ? pixels[i - 1]! : 0));
      horizontalSums(differences, width, height, 1);
      assert.deepEqual(differences, pixels);
      // Interleaved samples: each is the sum of its own from the row's start on.
      const values = Uint16Array.from({ length: width * samples * height }, () => Math.floor(65536 * next()));
      const undone = values.slice();
      horizontalSums(undone, width, height, samples);
      for (const [i, value] of undone.entries()) {
        const first = Math.floor(i / (width * samples)) * width * samples;
        let sum = 0;
        for (let at = i; at >= first; at -= samples) sum += values[at]!;
        assert.equal(value, sum & 0xffff);
      }
    }),
    runs,
  );
});

test('types have their sizes, lowest numbers and arrays', () => {
  const lowest: Record<DataType, number> = {
    uint8: 0,
    int8: -128,
    uint16: 0,
    int16: -32768,
    uint32: 0,
    int32: -2147483648,
    float32: -Infinity,
    float64: -Infinity,
  };
  for (const dataType of DATA_TYPES) {
    const pixels = allocatePixels(dataType, 3);
    assert.equal(dataTypeOf(pixels), dataType);
    assert.equal(pixels.length, 3);
    assert.equal(bytesPerSample(dataType), Number(/\d+/.exec(dataType)![0]) / 8);
    assert.equal(bytesPerStored(dataType), bytesPerSample(dataType));
    assert.equal(isFloat(dataType), dataType.startsWith('float'));
    assert.equal(minValue(dataType), lowest[dataType]);
    assert.equal(fillValueFor(dataType, undefined), isFloat(dataType) ? NaN : 0);
    assert.equal(fillValueFor(dataType, 7), 7);
    assert.equal(nodataReplacementFor(dataType, 7), 6);
    if (!isFloat(dataType))
      assert.equal(nodataReplacementFor(dataType, lowest[dataType]), lowest[dataType] + 1);
  }
  assert.deepEqual([bytesPerStored('int64'), bytesPerStored('uint64')], [8, 8]);
  assert.deepEqual(UNSIGNED_BY_SIZE, { 1: 'uint8', 2: 'uint16', 4: 'uint32' });
});

test('a nodata value must be representable in the pixel type', () => {
  assert.equal(nodataAsType('uint16', -9999), undefined);
  assert.equal(nodataAsType('uint16', 0.5), undefined);
  assert.equal(nodataAsType('uint16', undefined), undefined);
  assert.equal(nodataAsType('int16', -9999), -9999);
  assert.equal(nodataAsType('float32', 0.1), Math.fround(0.1));
  assert.equal(nodataAsType('float64', 0.1), 0.1);
  assert.ok(Number.isNaN(nodataAsType('float64', NaN)) && Number.isNaN(nodataAsType('float32', NaN)));
  for (const [text, dataType, value] of [
    ['-9999', 'int16', -9999],
    ['-9999', 'uint16', undefined],
    [' 7 ', 'uint8', 7],
    ['NaN', 'float32', NaN],
    ['-nan(ind)', 'float32', NaN],
    ['nan', 'uint8', undefined],
    ['inf', 'float32', Infinity],
    ['+Inf', 'float64', Infinity],
    ['-INF', 'float64', -Infinity],
    ['-1.#INF', 'float64', -Infinity],
    ['1.#INF', 'float64', Infinity],
    ['1e3', 'int16', 1000],
    ['', 'uint8', undefined],
    ['  ', 'uint8', undefined],
    ['none', 'float32', undefined],
    ['no inf', 'float32', undefined],
    ['a nan', 'float32', undefined],
    [undefined, 'uint8', undefined],
  ] as [string | undefined, DataType, number | undefined][])
    assert.equal(parseNodata(text, dataType), value, text);
});

test('stored numbers of 64 bits become floating point, others are a view', () => {
  const wide = new BigInt64Array([5n, -7n, 2n ** 53n]);
  assert.deepEqual([...readStoredNumbers('int64', wide.buffer, 8, 2)], [-7, 2 ** 53]);
  assert.deepEqual(
    [...readStoredNumbers('uint64', new BigUint64Array([9n, 2n ** 63n]).buffer, 0, 2)],
    [9, 2 ** 63],
  );
  const plain = Int16Array.of(1, -2, 3);
  const view = readStoredNumbers('int16', plain.buffer, 2, 2);
  assert.deepEqual([...view], [-2, 3]);
  assert.equal(view.buffer, plain.buffer);
});

test('bytes are swapped within numbers of their size', () => {
  const bytes = () => Buffer.from([1, 2, 3, 4, 5, 6, 7, 8]);
  for (const [each, expected] of [
    [1, [1, 2, 3, 4, 5, 6, 7, 8]],
    [2, [2, 1, 4, 3, 6, 5, 8, 7]],
    [4, [4, 3, 2, 1, 8, 7, 6, 5]],
    [8, [8, 7, 6, 5, 4, 3, 2, 1]],
  ] as const) {
    const swapped = bytes();
    swapBytes(swapped, each);
    assert.deepEqual([...swapped], expected);
  }
});

test('positions in an image are converted to coordinates and back, unless its pixels have no extent', () => {
  const transform = { originX: 100, originY: 50, xx: 2, xy: 0.5, yx: -1, yy: -3 };
  assert.deepEqual(pixelToMap(transform, 0, 0), [100, 50]);
  assert.deepEqual(pixelToMap(transform, 3, 2), [107, 41]);
  const [column, row] = mapToPixel(transform, 107, 41);
  assert.ok(Math.abs(column - 3) < 1e-12 && Math.abs(row - 2) < 1e-12);
  assert.ok(isInvertible(transform));
  assert.ok(isInvertible({ ...transform, xx: 0, yy: 0 }));
  assert.ok(!isInvertible({ ...transform, xx: 0, xy: 0 }));
  assert.ok(!isInvertible({ ...transform, xy: 6 }));
  assert.ok(!isInvertible({ ...transform, xx: 2, xy: 2, yx: 3, yy: 3 }));
  for (const key of ['originX', 'originY', 'xx', 'xy', 'yx', 'yy'] as const) {
    assert.ok(!isInvertible({ ...transform, [key]: NaN }));
    assert.ok(!isInvertible({ ...transform, [key]: Infinity }));
  }
});

test('the mask of the file marks pixels with data, otherwise its alpha band, which itself is always data', () => {
  const mask = { bands: 1 } as RasterHeader;
  const masks = { bands: 3 } as RasterHeader;
  const header = { mask, alpha: 3 } as RasterHeader;
  assert.deepEqual(findValidityBand(header, 2), { header: mask, index: 0 });
  assert.deepEqual(findValidityBand({ ...header, mask: masks }, 2), { header: masks, index: 2 });
  const { mask: _, ...alpha } = header;
  assert.deepEqual(findValidityBand(alpha, 2), { header: alpha, index: 3 });
  assert.equal(findValidityBand(alpha, 3), undefined);
  assert.equal(findValidityBand({ bands: 4 } as RasterHeader, 3), undefined);
});

/** A grid by which a destination of these pixels sees a source shifted and scaled. */
const gridOf = (width: number, height: number, scale: number, x: number, y: number) =>
  buildControlGrid(
    { bounds: { west: 0, east: width, north: 0, south: -height }, width, height },
    (u, v) => [x + scale * u, scale * v - y],
    { originX: 0, originY: 0, xx: 1, xy: 0, yx: 0, yy: -1 },
  );

test('rows of a control grid result in the pixels of the complete grid', () => {
  const [width, height] = [50, 100];
  const grid = gridOf(width, height, 0.4, 1.3, 2.1);
  const pixels = someOf('float32', 30 * 60, 9);
  const source = {
    pixels,
    window: { column: 0, row: 0, width: 30, height: 60 },
    rasterWidth: 30,
    rasterHeight: 60,
  };
  const run = (part: typeof grid) => {
    const out = new Float32Array(part.width * part.height);
    warp('bilinear', { ...source, nodata: undefined }, part, out, new Uint8Array(out.length).fill(1));
    return out;
  };
  const whole = run(grid);
  for (const [from, to] of [
    [0, 32],
    [32, 64],
    [32, 100],
    [96, 97],
  ] as const) {
    const part = sliceRows(grid, from, to);
    assert.deepEqual(
      [part.width, part.height, part.rows],
      [width, to - from, Math.ceil((to - from) / grid.step) + 1],
    );
    assert.equal(part.x.length, part.columns * part.rows);
    assert.deepEqual(run(part), whole.subarray(from * width, to * width));
  }
});

test('pixels that a mask or nodata excludes do not contribute to a warp', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...DATA_TYPES),
      fc.constantFrom('nearest' as const, 'bilinear' as const),
      fc.constantFrom(undefined, 0, 3),
      fc.tuple(fc.integer({ min: -3, max: 9 }), fc.integer({ min: -3, max: 7 })),
      fc.constantFrom(0, 0.3),
      fc.nat(1e6),
      (dataType, resampling, nodata, [shiftX, shiftY], part, seed) => {
        const window = { column: 2, row: 1, width: 11, height: 9 };
        const pixels = someOf(dataType, 99, seed);
        const next = random(seed);
        const validity = Uint8Array.from(pixels, () => (next() < 0.3 ? 0 : 1));
        const source = { pixels, window, nodata };
        // Beyond a window with less than the scene nothing may be asked for.
        const whole = { ...source, rasterWidth: 13, rasterHeight: 10 };
        const [width, height] = [8, 6];
        const [x, y] = [Math.max(3, shiftX) + part, Math.max(2, shiftY) + part];
        const grid = gridOf(width, height, 0.5, x, y);
        const out = allocatePixels(dataType, width * height);
        const valid = new Uint8Array(width * height).fill(1);
        const count = warpMasked(resampling, whole, validity, grid, out, valid);
        // The same of a wide type whose NaN is all that is excluded.
        const plain = Float64Array.from(pixels, (value, i) =>
          validity[i] === 0 || value === nodata ? NaN : value,
        );
        const expected = new Float64Array(width * height);
        const expectedValid = new Uint8Array(width * height).fill(1);
        const wanted = warp(
          resampling,
          { ...whole, pixels: plain, nodata: undefined },
          grid,
          expected,
          expectedValid,
        );
        assert.equal(count, wanted);
        assert.deepEqual(valid, expectedValid);
        for (const [i, value] of out.entries()) {
          if (valid[i] === 0) assert.ok(Object.is(value, fillValueFor(dataType, nodata)), `${value}`);
          else {
            const isMoved = nodata !== undefined && Math.abs(expected[i]! - nodata) <= 0.6;
            const tolerance = isFloat(dataType) ? 1e-5 : resampling === 'nearest' ? 0 : 0.67;
            assert.ok(
              Math.abs(value - expected[i]!) <= tolerance + (isMoved ? 1 : 0),
              `${value}, ${expected[i]}`,
            );
          }
        }
      },
    ),
    runs,
  );
});
