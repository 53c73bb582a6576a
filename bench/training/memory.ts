/** Peak memory of the process that trains a place, by the size of the place (figure 12 of the paper). */
import { selectEngine } from '../../src/engines/select.js';
import { trainCells } from '../../src/training/index.js';
import type { TrainCellTask } from '../../src/training/train-task.js';
import { writeDate } from '../../test/training/acquisition-files.js';
import { clouded, field } from '../../test/training/synthetic-land.js';
import { type BenchOptions, type BenchResult, result } from '../support/bench.js';
import { peakMBBelow } from '../support/measure-tree.js';
import { withFolder } from './folder.js';
import { markdown } from './markdown.js';

/** Two pairs of a cloudy date and one without cloud. */
const PAIRS = [0, 2].map((cloudy) => ({ cloudy, clear: cloudy + 1 }));
const LOOK = 20;
/** Pixels of a side of Sentinel-2's undivided scene at 60, 20 and 10 m. */
const SCENES = [1830, 5490, 10_980];

export interface PlaceMemory {
  model: string;
  /** Pixels of the place's side. */
  side: number;
  megabytes: number;
}

export async function measureMemory(models: string[], { short, log }: BenchOptions): Promise<PlaceMemory[]> {
  const { name: engine } = await selectEngine({});
  return withFolder('tilewright-memory-', async (folder) => {
    const measured: PlaceMemory[] = [];
    for (const side of short ? [384, 512] : [384, 512, 1024, 2048]) {
      const dates = PAIRS.flatMap((_, i) => {
        const clear = field(side, side, { seed: i + 1, time: Date.UTC(2020, i, 20) });
        return [clouded(clear), clear].map((date, n) => writeDate(folder, `${side}-${i}-${n}`, date));
      });
      for (const model of models) {
        const task: TrainCellTask = { id: model, model, seed: 1, epochs: 1, dates, pairs: PAIRS };
        measured.push({ model, side, megabytes: await peakOf(task, engine) });
        log(`memory: ${model}, ${side} x ${side} pixels: ${measured.at(-1)!.megabytes.toFixed(0)} MB`);
      }
    }
    return measured;
  });
}

async function peakOf(
  task: TrainCellTask,
  engine: Parameters<typeof trainCells>[1]['engine'],
): Promise<number> {
  let peak = 0;
  const looking = setInterval(() => {
    peak = Math.max(peak, peakMBBelow(process.pid) ?? 0);
  }, LOOK);
  try {
    for await (const outcome of trainCells([task], { engine, cores: 1 }))
      if (!('trained' in outcome)) throw new Error(`${task.id} is not trained: ${JSON.stringify(outcome)}`);
  } finally {
    clearInterval(looking);
  }
  return peak;
}

/** A row a model; of whole scenes, each as one place, along the line through the two largest places. */
export function memoryTable(measured: PlaceMemory[]): string[] {
  const sides = [...new Set(measured.map(({ side }) => side))];
  const rows = byModel(measured).map(({ model, places, extrapolated }) => [
    model,
    ...places.map(({ megabytes }) => megabytes.toFixed(0)),
    ...SCENES.map((side) => extrapolated(side).toFixed(0)),
  ]);
  return markdown(['MB', ...[...sides, ...SCENES].map((side) => `${side} x ${side}`)], rows);
}

export function memoryResults(measured: PlaceMemory[]): BenchResult[] {
  return byModel(measured).flatMap(({ model, places, extrapolated }) => {
    const title = (side: number) => `${model}: peak memory of training a place of ${side} x ${side} pixels`;
    return [
      ...places.map(({ side, megabytes }) => result(title(side), 'MB', megabytes)),
      ...SCENES.map((side) => result(`${title(side)}, extrapolated`, 'MB', extrapolated(side))),
    ];
  });
}

function byModel(measured: PlaceMemory[]) {
  return [...new Set(measured.map(({ model }) => model))].map((model) => {
    const places = measured.filter((one) => one.model === model);
    const [low, high] = places.slice(-2) as [PlaceMemory, PlaceMemory];
    const slope = (high.megabytes - low.megabytes) / (high.side ** 2 - low.side ** 2);
    const extrapolated = (side: number) => high.megabytes + slope * (side ** 2 - high.side ** 2);
    return { model, places, extrapolated };
  });
}
