/** Cloud removal at the borders of tiles: both tiles fill a pixel in the same way, and fills of different cells are blended. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import { loadEngine, type Tf } from '../../../src/engines/index.js';
import { Mask } from '../../../src/raster/index.js';
import { type AcquisitionFiles, readAcquisitions } from '../../../src/training/acquisitions.js';
import { fillBox, fillClouds } from '../../../src/training/cloud-filling.js';
import { type CloudCell, cloudImages, fillBlendedClouds } from '../../../src/training/cloud-halo.js';
import type { CellDates, HaloTask, ModelFiles } from '../../../src/training/halo.js';
import { cropPixels } from '../../../src/training/halo.js';
import { getModelSpec } from '../../../src/training/models/builtin.js';
import { buildModel } from '../../../src/training/models/network.js';
import { PriorFits } from '../../../src/training/prior.js';
import { randomStream } from '../../../src/utils/random.js';
import { tempFolder } from '../../support/temp.js';
import { writeDate } from '../acquisition-files.js';
import { type Field, field } from '../synthetic-land.js';

const SIDE = 80;
const SIZE = { width: SIDE, height: SIDE };
const SPEC = getModelSpec('cloud-removal');
const BANDS = ['red', 'green', 'blue'] as const;

/** A date of three cells side by side, of the same land for all dates, with `shift(cell)` added to its values. */
function strip({ seed = 1, shift }: { seed?: number; shift?: (cell: number) => number } = {}): Field {
  const date = field(3 * SIDE, SIDE, { seed });
  for (const band of BANDS)
    for (let at = 0; at < date.mask.length; at++)
      date.bands[band][at]! += shift?.(Math.floor((at % (3 * SIDE)) / SIDE)) ?? 0;
  return date;
}

/** Covers a disc around the border of the first two cells, or around `x`. */
function cloudOver(date: Field, x = SIDE, radius = 30): Field {
  for (let at = 0; at < date.mask.length; at++)
    if (Math.hypot((at % (3 * SIDE)) - x, Math.floor(at / (3 * SIDE)) - SIDE / 2) < radius) {
      date.mask[at] = Mask.cloud;
      for (const band of BANDS) date.bands[band][at] = 0.9;
    }
  return date;
}

const cellOf = (date: Field, cell: number): Field =>
  cropPixels(date, { column: cell * SIDE, row: 0, ...SIZE }) as Field;

interface Scene {
  date: Field;
  others: Record<string, Field>;
  /** Scenes of the prior of each cell. */
  priors: string[][];
}

/** Writes the cells of a scene, and returns the task of each, whose neighbours are the cells beside it. */
function tasksOf(folder: string, { date, others, priors }: Scene, models: (number | string)[]): Task[] {
  const cells = priors.map((prior, cell) => {
    const write = (name: string, one: Field) => writeDate(folder, `${name}-${cell}`, cellOf(one, cell));
    const files = Object.fromEntries(Object.entries(others).map(([name, one]) => [name, write(name, one)]));
    return { date: onlyVisible(write('date', date)), dates: { prior, files } };
  });
  return cells.map(({ date, dates }, cell) => ({
    date,
    model: modelFiles(models[cell]!),
    halo: {
      origin: { column: (9 + cell) * SIDE, row: 4 * SIDE },
      dates,
      neighbours: [-1, 1].flatMap((east) => {
        const other = cells[cell + east];
        const model = modelFiles(models[cell + east]!);
        return other ? [{ ...other, ...{ east, south: 0, size: SIZE, model } }] : [];
      }),
    },
  }));
}

type Task = HaloTask & { halo: { dates: CellDates } };

const onlyVisible = ({ time, bands: { red, green, blue }, mask }: ReturnType<typeof writeDate>) => ({
  ...{ time, mask },
  bands: { red, green, blue },
});

const modelFiles = (name: number | string) =>
  ({ topology: { path: String(name) }, weights: { path: '' } }) as unknown as ModelFiles;

/** An untrained model, which fills clouds with the adjusted values of its prior plus the number in its path. */
const biasedModels =
  (tf: Tf) =>
  async ({ topology }: ModelFiles) => {
    const weights = [0, 1, 2].map(() => new Array<number>(13).fill(0));
    return buildModel(tf, SPEC, 1, { weights, bias: [0, 0, 0].map(() => Number(topology.path)) });
  };

async function readDate(files: AcquisitionFiles) {
  const read = await readAcquisitions([files]);
  assert.ok('dates' in read);
  return read.dates[0]!;
}

async function fill(tf: Tf, task: Task, load: (files: ModelFiles) => Promise<LayersModel>) {
  return (await fillBlendedClouds(tf, SPEC, await readDate(task.date), task, load, new PriorFits()))!;
}

/** The largest difference of neighbouring filled pixels in a row: of the fills less `land`, over the first two cells. */
function largestStep(
  fills: Awaited<ReturnType<typeof fill>>[],
  land: Field,
): { inside: number; border: number } {
  const largest = { inside: 0, border: 0 };
  const at = (x: number, y: number): number | undefined => {
    const one = fills[Math.floor(x / SIDE)]!;
    const pixel = y * SIDE + (x % SIDE);
    return one.filled[pixel] ? one.planes[0]![pixel]! - land.bands.red[y * 3 * SIDE + x]! : undefined;
  };
  for (let y = 0; y < SIDE; y++)
    for (let x = 1; x < 2 * SIDE; x++) {
      const [a, b] = [at(x - 1, y), at(x, y)];
      if (a === undefined || b === undefined) continue;
      const kind = x === SIDE ? 'border' : 'inside';
      largest[kind] = Math.max(largest[kind], Math.abs(a - b));
    }
  return largest;
}

/** The values are stored as ten thousandths, so the differences of two pixels are known to four of them. */
const ROUNDING = 4e-4;

describe('cloud removal at the borders of tiles', () => {
  it('computes the same values in both tiles', async () => {
    const { tf } = await loadEngine('wasm');
    const model = buildModel(tf, SPEC, 3);
    const random = randomStream(5);
    for (const variable of model.weights) {
      const shape = variable.shape as number[];
      const size = shape.reduce((product, side) => product * side, 1);
      if (['date', 'cloud'].includes(variable.originalName.split('/')[0]!)) continue;
      variable.write(
        tf.tensor(
          Float32Array.from({ length: size }, () => random.next() - 0.4),
          shape,
        ),
      );
    }
    const date = cloudOver(strip());
    const others = { near: cloudOver(strip({ seed: 1, shift: () => 0.02 }), SIDE + 20, 9), far: strip() };
    for (const plane of Object.values(date.bands)) for (let at = 0; at < 900; at++) plane[at] = NaN;
    // The scene `near` is in the prior of the first cell only.
    const priors = [['near', 'far'], ['far'], ['far']];
    const imagesOf = (own: number, scenes: string[]) => {
      const cells = [-1, 0, 1].flatMap((east): CloudCell[] => {
        const cell = own + east;
        const read: CloudCell['read'] = async ({ column, row, ...size }) => {
          const crop = (one: Field) => cropPixels(one, { column: column + own * SIDE, row, ...size });
          const entries = Object.entries(others).map(([name, one]) => [name, crop(one)] as const);
          return { date: crop(date), others: new Map(entries) };
        };
        return priors[cell] ? [{ ...{ east, south: 0, size: SIZE }, prior: priors[cell], read }] : [];
      });
      const box = { column: SIDE - 40 - own * SIDE, row: -24, width: 80, height: SIDE + 48 };
      const origin = { column: (9 + own) * SIDE, row: 4 * SIDE };
      return cloudImages(SPEC, SIZE, origin, cells, [{ box, scenes }]);
    };
    const fit = {
      means: [0.1, 0.2, 0.3],
      adjustment: { weights: [[1], [0], [0]].map((w) => [...w, 0, 0.1]), bias: [0, 0.1, 0] },
    };
    // Pixels for which a list has no scene have the values of the prior of their cell.
    const [[none], [far]] = [await imagesOf(0, []), await imagesOf(0, ['far'])];
    const at = 50 * 80 + 60;
    assert.ok(none!.inputs.every((plane, b) => Object.is(plane[at], far!.inputs[b]![at])));
    assert.ok(Number.isFinite(none!.inputs[3]![at]));
    for (const scenes of [['near', 'far'], ['far'], []]) {
      const filled = await Promise.all(
        [0, 1].map(async (own) => {
          const [image] = await imagesOf(own, scenes);
          const box = { column: 24, row: 24, width: 32, height: SIDE };
          const wanted = new Uint8Array(32 * SIDE).fill(1);
          return fillBox(tf, model, SPEC, image!, fit, { box, wanted });
        }),
      );
      const [west, east] = filled as [Float32Array[], Float32Array[]];
      const scale = Math.max(...west.flatMap((plane) => [...plane].map(Math.abs)));
      for (const [b, plane] of west.entries()) {
        assert.ok(new Set(plane).size > 500, 'the fill is not constant');
        for (const [at, value] of plane.entries())
          assert.ok(Math.abs(value - east[b]![at]!) < 1e-6 * scale, `${at}: ${value} ${east[b]![at]}`);
      }
    }
  });

  it('has no step if the models, the regressions and the scenes of the priors differ', async (t) => {
    const folder = await tempFolder(t);
    const { tf } = await loadEngine('wasm');
    // The light of the date differs from that of the other dates, by another number in each cell.
    const date = cloudOver(strip({ shift: (cell) => 0.02 * cell }));
    const others = { bright: strip({ shift: () => 0.05 }), dark: strip({ shift: (cell) => -0.01 * cell }) };
    const priors = [['bright', 'dark'], ['dark'], ['dark']];
    const load = biasedModels(tf);
    const tasks = tasksOf(folder, { date, others, priors }, [0, 0.1, 0.1]);
    const fills = await Promise.all(tasks.slice(0, 2).map((task) => fill(tf, task, load)));
    const alone = await Promise.all(
      tasks.slice(0, 2).map(async ({ date, halo, model }) => {
        const own = halo.dates.prior.map((scene) => readDate(halo.dates.files[scene]!));
        return fillClouds(tf, await load(model), SPEC, await readDate(date), await Promise.all(own))!;
      }),
    );
    const land = strip();
    const steps = [largestStep(alone, land), largestStep(fills, land)] as const;
    // The fills of the two cells differ by this at the border.
    assert.ok(steps[0].border > 0.1, `${steps[0].border}`);
    const ramp = (steps[0].border + 2 * ROUNDING) / 32 + ROUNDING;
    assert.ok(steps[1].border < ramp && steps[1].inside < ramp + steps[0].inside, JSON.stringify(steps));
    for (const [i, { filled }] of fills.entries()) assert.deepEqual(filled, alone[i]!.filled);
  });

  it('fills a cloud in the middle of a tile as without a halo, and does not read the neighbours', async (t) => {
    const folder = await tempFolder(t);
    const { tf } = await loadEngine('wasm');
    const date = cloudOver(strip(), 1.5 * SIDE, 14);
    const others = { other: strip({ shift: () => 0.05 }) };
    const [, task] = tasksOf(folder, { date, others, priors: [['other'], ['other'], ['other']] }, [0, 1, 2]);
    const absent = { time: 0, bands: {}, mask: { path: 'absent', start: 0, bytes: 0 } };
    task!.halo.neighbours = task!.halo.neighbours.map((one) => ({
      ...{ ...one, date: absent, dates: { prior: ['other'], files: { other: absent } } },
    }));
    const load = biasedModels(tf);
    const made = await fill(tf, task!, load);
    const own = await readDate(task!.date);
    const other = await readDate(task!.halo.dates.files['other']!);
    const alone = fillClouds(tf, await load(task!.model), SPEC, own, [other])!;
    assert.deepEqual(made.filled, alone.filled);
    for (const [b, plane] of made.planes.entries())
      for (const [at, value] of plane.entries())
        if (made.filled[at]) assert.ok(Math.abs(value - alone.planes[b]![at]!) < 1e-6);
  });

  it('fills all clouds without neighbours, other dates, and finite or usable models of neighbours', async (t) => {
    const folder = await tempFolder(t);
    const { tf } = await loadEngine('wasm');
    const date = cloudOver(strip());
    const others = { other: strip({ shift: () => 0.05 }) };
    const countOf = (cell: number) => cellOf(date, cell).mask.filter((code) => code === Mask.cloud).length;
    const priors = [['other'], [], ['other']];
    const [task, second] = tasksOf(folder, { date, others, priors }, [0, Infinity, 0]);
    const { neighbours } = task!.halo;
    const load = biasedModels(tf);
    const planes: Float32Array[] = [];
    for (const changed of [neighbours, [], neighbours.map(({ model: _, dates: __, ...one }) => one)]) {
      const made = await fill(tf, { ...task!, halo: { ...task!.halo, neighbours: changed } }, load);
      assert.equal(made.filled.filter((is) => is).length, countOf(0));
      planes.push(made.planes[0]!);
    }
    // The neighbour has no share if its model is not finite.
    const [infinite, , without] = planes;
    infinite!.forEach((value, at) => {
      if (!Number.isNaN(value)) assert.ok(Math.abs(value - without![at]!) < 1e-6);
    });
    // The cell without other dates has the mean of its clear pixels, and the values of its neighbour near the border.
    const finite = { ...second!, model: modelFiles(0) };
    const made = await fill(tf, finite, load);
    assert.equal(made.filled.filter((is) => is).length, countOf(1));
  });

  it('blends models of older versions, which read only the date', async (t) => {
    const folder = await tempFolder(t);
    const { tf } = await loadEngine('wasm');
    const date = cloudOver(strip());
    date.mask[SIDE * 3 * 40 + SIDE + 3] = Mask.nodata;
    const others = { other: strip() };
    const [task] = tasksOf(folder, { date, others, priors: [[], ['other'], ['other']] }, [0.1, 0.2, 0.3]);
    const load = async ({ topology }: ModelFiles) => {
      const input = tf.input({ shape: [null, null, 3] });
      const weights = [tf.zeros([1, 1, 3, 3]), tf.tensor1d(new Array<number>(3).fill(Number(topology.path)))];
      const output = tf.layers.conv2d({ filters: 3, kernelSize: 1, weights }).apply(input);
      return tf.model({ inputs: input, outputs: output as typeof input });
    };
    const { planes, filled } = await fill(tf, task!, load);
    const row = 40 * SIDE;
    assert.ok(filled[row + 79] && filled[row + 63]);
    assert.ok(Math.abs(planes[0]![row + 79]! - (0.1 + 0.1 * (15.5 / 32))) < 1e-5);
    assert.ok(Math.abs(planes[0]![row + 63]! - 0.1) < 1e-5);
  });
});
