/** Halos, blended models, and borders without seams. */
import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import { loadEngine, type Tf } from '../../../src/engines/index.js';
import { Mask } from '../../../src/raster/index.js';
import { type AcquisitionPixels, readAcquisitionWindow } from '../../../src/training/acquisitions.js';
import type { ModelFiles } from '../../../src/training/halo.js';
import { type HaloNeighbour, neighbourWeights, tileWithHalo } from '../../../src/training/halo.js';
import { boxPredictor } from '../../../src/training/halo-prediction.js';
import { getModelSpec } from '../../../src/training/models/builtin.js';
import { buildModel } from '../../../src/training/models/network.js';
import { receptiveField } from '../../../src/training/models/spec.js';
import { predictBlended } from '../../../src/training/predict-tile.js';
import { randomStream } from '../../../src/utils/random.js';
import { tempFolder } from '../../support/temp.js';
import { writeDate } from '../acquisition-files.js';
import { field } from '../synthetic-land.js';

const AROUND = [-1, 0, 1].flatMap((south) =>
  [-1, 0, 1].filter((east) => east !== 0 || south !== 0).map((east) => ({ east, south })),
);

/** The weight of each neighbour at a pixel of the tile. */
function weightsAt(all: ReturnType<typeof neighbourWeights>, column: number, row: number): number[] {
  return all.map(({ box, weights }) => {
    const [x, y] = [column - box.column, row - box.row];
    return x >= 0 && y >= 0 && x < box.width && y < box.height ? weights[y * box.width + x]! : 0;
  });
}

describe('neighbourWeights', () => {
  const tile = fc.record({
    width: fc.integer({ min: 2, max: 40 }),
    height: fc.integer({ min: 2, max: 40 }),
    present: fc.subarray(AROUND),
  });

  it('never gives more than 1 in sum, and nothing beyond the radius', () => {
    fc.assert(
      fc.property(tile, fc.nat(20), ({ width, height, present }, more) => {
        const radius = Math.max(1, Math.min(more, Math.floor(Math.min(width, height) / 2)));
        const all = neighbourWeights({ width, height }, present, radius);
        for (let row = 0; row < height; row++)
          for (let column = 0; column < width; column++) {
            const weights = weightsAt(all, column, row);
            const sum = weights.reduce((a, b) => a + b, 0);
            assert.ok(weights.every((weight) => weight >= 0) && sum < 1, `${sum}`);
            const isInner =
              Math.min(column, width - 1 - column) >= radius && Math.min(row, height - 1 - row) >= radius;
            if (isInner) assert.equal(sum, 0);
          }
      }),
    );
  });

  it('changes by at most one step of the ramp across a border, seen from both sides', () => {
    const [width, height, radius] = [24, 20, 8];
    fc.assert(
      fc.property(fc.subarray(AROUND), fc.nat(height - 1), (others, row) => {
        // Cells around the western tile; the eastern tile sees those that touch it, one column further west.
        const present = [
          ...others.filter(({ east, south }) => east !== 1 || south !== 0),
          { east: 1, south: 0 },
        ];
        const seen = present
          .filter(({ east }) => east >= 0)
          .map(({ east, south }) => ({ east: east - 1, south }))
          .filter(({ east, south }) => east !== 0 || south !== 0);
        const below = present.find(({ east, south }) => east === 0 && south === 0);
        assert.equal(below, undefined);
        const eastern = [...seen, { east: -1, south: 0 }];
        const west = weightsAt(neighbourWeights({ width, height }, present, radius), width - 1, row);
        const east = weightsAt(neighbourWeights({ width, height }, eastern, radius), 0, row);
        const ofEast = west[present.length - 1]!;
        const ownOfEast = 1 - east.reduce((a, b) => a + b, 0);
        const step = 1 / (2 * radius);
        assert.ok(ownOfEast >= ofEast && ownOfEast - ofEast <= step + 1e-6, `${ofEast} ${ownOfEast}`);
      }),
    );
  });
});

/** A scene of 3 x 3 cells of 44 x 44 px, as dates of its cells. */
function scene(side = 44): (east: number, south: number) => AcquisitionPixels {
  const value = (x: number, y: number, b: number) =>
    0.1 + 0.05 * Math.sin(x / (3 + b)) * Math.cos(y / (5 - b));
  return (east, south) => {
    const plane = (b: number) =>
      Float32Array.from({ length: side ** 2 }, (_, at) =>
        value(east * side + (at % side), south * side + Math.floor(at / side), b),
      );
    const mask = new Uint8Array(side ** 2).fill(Mask.clear);
    // A cloud across the border of the middle and the eastern cell.
    for (let at = 0; at < mask.length; at++) {
      const [x, y] = [east * side + (at % side), south * side + Math.floor(at / side)];
      if (Math.hypot(x - 2 * side, y - 1.5 * side) < 7) mask[at] = Mask.cloud;
    }
    return {
      time: 0,
      width: side,
      height: side,
      bands: { red: plane(0), green: plane(1), blue: plane(2) },
      mask,
    };
  };
}

const part = (date: AcquisitionPixels, box: Parameters<HaloNeighbour['read']>[0]): AcquisitionPixels => {
  const crop = <T extends Float32Array | Uint8Array>(plane: T): T => {
    const out = plane.slice(0, box.width * box.height) as T;
    for (let row = 0; row < box.height; row++) {
      const from = (box.row + row) * date.width + box.column;
      out.set(plane.subarray(from, from + box.width), row * box.width);
    }
    return out;
  };
  const { red, green, blue } = date.bands;
  return {
    ...{ time: 0, width: box.width, height: box.height, mask: crop(date.mask) },
    bands: { red: crop(red!), green: crop(green!), blue: crop(blue!) },
  };
};

/** The image of a cell of the scene, which lies at (column, row) of a lattice of cells. */
function imageOf(cells: ReturnType<typeof scene>, column: number, row: number, width: number, side = 44) {
  const neighbours = AROUND.map(({ east, south }) => ({
    ...{ east, south, size: { width: side, height: side } },
    read: async (box: Parameters<HaloNeighbour['read']>[0]) => part(cells(column + east, row + south), box),
  }));
  const inputs = ['red', 'green', 'blue'] as const;
  const origin = { column: (1000 + column) * side, row: (500 + row) * side };
  return tileWithHalo(cells(column, row), neighbours, { width, origin, inputs });
}

for (const kind of ['ndvi', 'ndmi'])
  test(`both tiles of a border compute the same values of one model: ${kind}`, async () => {
    const { tf } = await loadEngine('wasm');
    const spec = getModelSpec(kind);
    const model = buildModel(tf, spec, 3);
    const random = randomStream(5);
    for (const variable of model.weights) {
      const least = variable.originalName.includes('variance') ? 0.5 : -0.4;
      const values = Float32Array.from(
        { length: variable.shape.reduce<number>((size, side) => size * side!, 1) },
        () => random.next() + least,
      );
      variable.write(tf.tensor(values, variable.shape as number[]));
    }
    const cells = scene();
    const halo = receptiveField(spec);
    const [middle, eastern] = [await imageOf(cells, 1, 1, halo), await imageOf(cells, 2, 1, halo)];
    // The western strip of the eastern tile, as that tile predicts it, and as the middle tile sees it in its halo.
    const width = kind === 'ndvi' ? 1 : 8;
    const box = { column: eastern.tile.column, row: eastern.tile.row, width, height: 44 };
    const own = boxPredictor(tf, spec, eastern)(model, box);
    const known = own.filter((value) => !Number.isNaN(value));
    const scale = Math.max(...known.map(Math.abs));
    assert.ok(new Set(known).size > 8, 'the prediction is not constant');
    const seen = boxPredictor(
      tf,
      spec,
      middle,
    )(model, {
      ...box,
      column: middle.tile.column + 44,
      row: middle.tile.row,
    });
    for (const [at, value] of own.entries()) {
      if (Number.isNaN(value)) assert.ok(Number.isNaN(seen[at]!));
      else assert.ok(Math.abs(value - seen[at]!) < 1e-6 * scale, `${at}: ${value} ${seen[at]}`);
    }
  });

test('the map of a model that returns the mean of a patch of sloping land has no steps', async () => {
  const { tf } = await loadEngine('wasm');
  const spec = getModelSpec('ndvi');
  const side = 44;
  const [east, south] = [0.003, -0.002];
  const cells = (column: number, row: number): AcquisitionPixels => {
    const plane = Float32Array.from(
      { length: side ** 2 },
      (_, at) => east * (column * side + (at % side)) + south * (row * side + Math.floor(at / side)),
    );
    const mask = new Uint8Array(side ** 2).fill(Mask.clear);
    return {
      time: 0,
      ...{ width: side, height: side, mask },
      bands: { red: plane, green: plane, blue: plane },
    };
  };
  const input = tf.input({ shape: [null, null, 3] });
  const means = tf.layers.globalAveragePooling2d({ dataFormat: 'channelsLast' }).apply(input);
  const red = tf.layers.dense({ units: 1, weights: [tf.tensor2d([[1], [0], [0]]), tf.zeros([1])] });
  const model = tf.model({ inputs: input, outputs: red.apply(means) as typeof input });
  for (const [column, row] of [
    [1, 1],
    [2, 1],
  ] as const) {
    const image = await imageOf(cells, column, row, receptiveField(spec));
    const map = boxPredictor(tf, spec, image)(model, image.tile);
    const expected = cells(column, row).bands.red!;
    for (const [at, value] of map.entries())
      assert.ok(Math.abs(value - expected[at]!) < 1e-6, `${column} at ${at}: ${value} ${expected[at]}`);
  }
});

/** Loads a model that predicts the number in its path everywhere. */
const constantModels =
  (tf: Tf) =>
  async ({ topology }: ModelFiles) => {
    const input = tf.input({ shape: [null, null, 3] });
    const weights = [tf.zeros([1, 1, 3, 1]), tf.tensor1d([Number(topology.path)])];
    const output = tf.layers.conv2d({ filters: 1, kernelSize: 1, weights }).apply(input);
    return tf.model({ inputs: input, outputs: output as typeof input });
  };

const constantModel = (value: number) => ({ topology: { path: String(value) } }) as unknown as ModelFiles;

test('models that return the column of their place make a layer without a step', async (t) => {
  const folder = await tempFolder(t);
  const { tf } = await loadEngine('wasm');
  const spec = getModelSpec('ndmi');
  const side = 64;
  const date = writeDate(folder, 'date', field(side, side));
  const size = { width: side, height: side };
  const rows: number[][] = Array.from({ length: side }, () => []);
  for (const column of [3, 4, 5]) {
    const neighbours = AROUND.map((one) => ({ ...one, date, size, model: constantModel(column + one.east) }));
    const { width, height } = size;
    const halo = { origin: { column: column * width, row: 5 * height }, neighbours };
    const pixels = await readAcquisitionWindow(date, size, { column: 0, row: 0, width, height });
    const plane = await predictBlended(
      tf,
      spec,
      pixels,
      { model: constantModel(column), halo },
      constantModels(tf),
    );
    for (const [y, row] of rows.entries()) row.push(...plane.subarray(y * side, (y + 1) * side));
  }
  for (const row of rows)
    for (let x = 1; x < row.length; x++) {
      const step = row[x]! - row[x - 1]!;
      assert.ok(step > -1e-5 && step < 1 / 32 + 1e-5, `column ${x}: ${step}`);
    }
  assert.ok(rows.every((row) => row[0]! < 3 && row.at(-1)! > 5));
});

test('a neighbour whose model predicts infinity makes no hole', async (t) => {
  const folder = await tempFolder(t);
  const { tf } = await loadEngine('wasm');
  const size = { width: 64, height: 64 };
  const date = writeDate(folder, 'date', field(size.width, size.height));
  const neighbours = [{ east: 1, south: 0, date, size, model: constantModel(Infinity) }];
  const halo = { origin: { column: 0, row: 0 }, neighbours };
  const pixels = await readAcquisitionWindow(date, size, { column: 0, row: 0, ...size });
  const plane = await predictBlended(
    tf,
    getModelSpec('ndmi'),
    pixels,
    { model: constantModel(3), halo },
    constantModels(tf),
  );
  assert.ok(plane.every((value) => Math.abs(value - 3) < 1e-5));
});

test('a tile without neighbours is mirrored at its borders', async () => {
  const tile = scene(8)(1, 1);
  const image = await tileWithHalo(tile, [], {
    ...{ width: 3, origin: { column: 0, row: 0 }, inputs: ['red'] as const },
  });
  const red = (column: number, row: number) => image.inputs[0]![(row + 3) * image.width + column + 3]!;
  for (let at = 0; at < 8; at++)
    for (let d = 1; d <= 3; d++) {
      assert.equal(red(-d, at), red(d - 1, at));
      assert.equal(red(at, 7 + d), red(at, 8 - d));
      assert.equal(red(-d, 7 + d), red(d - 1, 8 - d));
    }
});
