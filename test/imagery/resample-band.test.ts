/** Resampling of stored bands, compared pixel by pixel with the definition of each method. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { BandFile } from '../../src/imagery/index.js';
import { RESAMPLING_METHODS, type ResamplingMethod, resampleBand } from '../../src/imagery/resample.js';
import type { TileReader } from '../../src/imagery/tile-reader.js';
import { cellPartViewport, type Viewport } from '../../src/imagery/viewport.js';
import type { Window } from '../../src/raster/index.js';
import { randomly } from '../derive/tiles.js';

const HOLE = -9999;

interface Image {
  width: number;
  height: number;
  pixels: Float64Array;
}

/** Reads an image with overviews from memory, and records the reads. */
class MemoryReader {
  readonly read: { level: number; window: Window }[] = [];

  constructor(private readonly levels: Image[]) {}

  async structure() {
    return { dataType: 'float64', levels: this.levels, masks: 0 };
  }

  async window(_file: BandFile, level: number, window: Window) {
    this.read.push({ level, window });
    const { width, height, pixels } = this.levels[level]!;
    assert.ok(window.column >= 0 && window.row >= 0 && window.width > 0 && window.height > 0);
    assert.ok(window.column + window.width <= width && window.row + window.height <= height);
    return Float64Array.from({ length: window.width * window.height }, (_, i) => {
      const row = window.row + Math.floor(i / window.width);
      return pixels[row * width + window.column + (i % window.width)]!;
    });
  }
}

async function sample(levels: Image[], view: Viewport, resampling: ResamplingMethod, scale = 1, offset = 0) {
  const reader = new MemoryReader(levels);
  const [{ width, height }] = levels as [Image];
  const image = { path: 'a', start: 0, bytes: 1 };
  const file: BandFile = { ...image, band: 0, width, height, hole: HOLE, scale, offset };
  // Small images need no thread.
  const source = { reader: reader as unknown as TileReader, pool: undefined as never };
  const values = await resampleBand(source, file, view, resampling);
  assert.equal(reader.read.length, 1);
  return { values, ...reader.read[0]! };
}

const mean = (terms: [value: number, weight: number][]) => {
  const weights = terms.reduce((sum, [, weight]) => sum + weight, 0);
  return terms.reduce((sum, [value, weight]) => sum + (value * weight) / weights, 0);
};

/** Pixels of one axis, including those beyond the edge, with weights by the distance of their centres from `centre`. */
function weightsAt(centre: number, reach: number, weight: (distance: number) => number) {
  const found: [pixel: number, weight: number][] = [];
  for (let pixel = Math.floor(centre - reach) - 2; pixel < centre + reach + 2; pixel++)
    if (Math.abs(pixel + 0.5 - centre) < reach) found.push([pixel, weight(Math.abs(pixel + 0.5 - centre))]);
  return found;
}

/** The kernels as polynomials of the position between two pixels, and as products of sines. */
const WEIGHTS: Record<'bilinear' | 'cubic' | 'cubic_spline' | 'lanczos', (distance: number) => number> = {
  bilinear: (d) => 1 - d,
  cubic: (d) => (d < 1 ? (2 - 5 * d ** 2 + 3 * d ** 3) / 2 : (4 - 8 * d + 5 * d ** 2 - d ** 3) / 2),
  cubic_spline: (d) => (d < 1 ? (4 - 6 * d ** 2 + 3 * d ** 3) / 6 : (8 - 12 * d + 6 * d ** 2 - d ** 3) / 6),
  lanczos: (d) =>
    d === 0 ? 1 : (3 * Math.sin(Math.PI * d) * Math.sin((Math.PI * d) / 3)) / (Math.PI * d) ** 2,
};
const REACH = { bilinear: 1, cubic: 2, cubic_spline: 2, lanczos: 3 };

/** Pixels and weights of one axis at one position. */
function axisWeights(
  method: ResamplingMethod,
  centre: number,
  step: number,
): [pixel: number, weight: number][] {
  if (method === 'nearest') return [[Math.floor(centre), 1]];
  if (method === 'average') {
    const [west, east] = [centre - step / 2, centre + step / 2];
    const shared = (pixel: number) => Math.min(east, pixel + 1) - Math.max(west, pixel);
    const found: [number, number][] = [];
    for (let pixel = Math.floor(west); pixel < east; pixel++) found.push([pixel, shared(pixel)]);
    return found;
  }
  const most = method === 'bilinear' ? Infinity : 4;
  const widened = step <= 1 / 0.95 ? 1 : Math.min(step, most);
  return weightsAt(centre, REACH[method] * widened, (distance) => WEIGHTS[method](distance / widened));
}

/** One value by the definition: NaN if the nearest pixel has no data. */
function valueAt(
  image: Image,
  method: ResamplingMethod,
  x: number,
  y: number,
  stepX: number,
  stepY: number,
): number {
  const at = (column: number, row: number) => {
    if (column < 0 || row < 0 || column >= image.width || row >= image.height) return undefined;
    const value = image.pixels[row * image.width + column]!;
    return value === HOLE ? undefined : value;
  };
  if (at(Math.floor(x), Math.floor(y)) === undefined) return NaN;
  const terms: [number, number][] = [];
  let isWhole = true;
  for (const [row, down] of axisWeights(method, y, stepY))
    for (const [column, across] of axisWeights(method, x, stepX)) {
      const value = at(column, row);
      if (value === undefined) isWhole = false;
      else terms.push([value, across * down]);
    }
  const needsAll = method === 'cubic' || method === 'lanczos';
  return needsAll && !isWhole ? valueAt(image, 'bilinear', x, y, stepX, stepY) : mean(terms);
}

function imageOf(width: number, height: number, seed: number, holes: number): Image {
  const random = randomly(seed);
  const pixels = Float64Array.from({ length: width * height }, () =>
    random() < holes ? HOLE : Math.floor(1000 * random()),
  );
  return { width, height, pixels };
}

const near = (actual: number, expected: number, what: string) =>
  assert.ok(
    Number.isNaN(expected) ? Number.isNaN(actual) : Math.abs(actual - expected) < 1e-6,
    `${what}: ${actual} is not ${expected}`,
  );

for (const method of RESAMPLING_METHODS)
  test(`${method}: values follow the definition`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(1e6),
        fc.constantFrom(0, 0, 0.05, 0.3),
        fc.constantFrom([1, 0], [0.0001, -0.1], [2, 5]),
        async (seed, holes, [scale, offset]) => {
          const random = randomly(seed);
          const integerUpTo = (most: number) => 1 + Math.floor(most * random());
          const image = imageOf(integerUpTo(24), integerUpTo(24), seed, holes);
          const part = (from = 0.9 * random()) => [from, from + (1 - from) * random()] as const;
          const [[west, east], [north, south]] = [part(), part()];
          const [columns, rows] = [integerUpTo(9), integerUpTo(9)];
          const view = cellPartViewport(columns, rows, { west, east, north, south });
          const { values } = await sample([image], view, method, scale, offset);
          assert.equal(values.length, columns * rows);
          const steps = [view.columnStep * image.width, view.rowStep * image.height] as const;
          for (const [i, value] of values.entries()) {
            const x = view.columns[i % columns]! * image.width;
            const y = view.rows[Math.floor(i / columns)]! * image.height;
            // At the edge of a pixel, rounding decides.
            if ([x, y].some((position) => Math.abs(position - Math.round(position)) < 1e-6)) continue;
            near(value, valueAt(image, method, x, y, ...steps) * scale! + offset!, `pixel ${i}`);
          }
        },
      ),
      { seed: 42, numRuns: 150 },
    );
  });

test('unevenly spaced rows have the mean distance as the step', async () => {
  const image = imageOf(12, 12, 5, 0);
  const rows = Float64Array.of(0.1, 0.18, 0.29, 0.44, 0.7);
  const view: Viewport = {
    ...cellPartViewport(1, 1, { west: 0.3, east: 0.4, north: 0, south: 1 }),
    rows,
    rowStep: 9,
  };
  for (const method of ['average', 'lanczos'] as const) {
    const { values } = await sample([image], view, method);
    for (const [i, row] of rows.entries())
      near(values[i]!, valueAt(image, method, 0.35 * 12, row * 12, 1.2, ((0.7 - 0.1) / 4) * 12), method);
  }
});

test('the overview is the smallest with at least the pixels of the image in both directions', async () => {
  const levels = [64, 32, 16].map((size) => imageOf(size, size, size, 0));
  const level = async (columns: number, rows: number) =>
    (
      await sample(
        levels,
        cellPartViewport(columns, rows, { west: 0, east: 1, north: 0, south: 1 }),
        'nearest',
      )
    ).level;
  for (const [columns, rows, expected] of [
    [128, 128, 0],
    [64, 64, 0],
    [33, 33, 0],
    [32, 32, 1],
    [32, 16, 1],
    [16, 32, 1],
    [17, 17, 1],
    [16, 16, 2],
    [1, 1, 2],
    [4, 64, 0],
  ] as const)
    assert.equal(await level(columns, rows), expected, `${columns} x ${rows}`);
  // 64 / 3 columns are an overview of 22: the ratio is 2.909.
  const odd = [imageOf(64, 64, 1, 0), imageOf(22, 22, 2, 0)];
  const third = await sample(
    odd,
    cellPartViewport(22, 22, { west: 0, east: 1, north: 0, south: 1 }),
    'average',
  );
  assert.equal(third.level, 1);
});

test('only pixels that contribute are read', async () => {
  const image = imageOf(20, 10, 7, 0);
  const view = cellPartViewport(4, 2, { west: 0.25, east: 0.45, north: 0, south: 0.2 });
  const nearest = await sample([image], view, 'nearest');
  assert.deepEqual(nearest.window, { column: 5, row: 0, width: 4, height: 2 });
  const bilinear = await sample([image], view, 'bilinear');
  assert.deepEqual(bilinear.window, { column: 5, row: 0, width: 4, height: 2 });
  // The centre of a pixel belongs to that pixel.
  for (const [i, value] of bilinear.values.entries()) near(value, nearest.values[i]!, `pixel ${i}`);
});

test('a point that rounding moves just before the edge of a pixel is on the edge', async () => {
  const image: Image = { width: 100, height: 1, pixels: Float64Array.from({ length: 100 }, (_, i) => i) };
  const shares = Float64Array.from({ length: 100 }, (_, i) => i / 100);
  const isBefore = (share: number, i: number) => share * 100 < i;
  assert.ok(shares.some(isBefore), 'one of them is rounded down');
  const view: Viewport = {
    left: 0,
    top: 0,
    columns: shares,
    rows: Float64Array.of(0.5),
    columnStep: 0.01,
    rowStep: 1,
  };
  assert.deepEqual([...(await sample([image], view, 'nearest')).values], [...image.pixels]);
});
