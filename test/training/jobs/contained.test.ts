/** The contained mode starts processes with limits, each of which trains one cell at a time. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { SERIES_DATES, writeSentinelLikeSeries } from '../../../data-samples/index.js';
import { allowedCpus } from '../../../src/engines/processes.js';
import { type TrainResults, trainCells } from '../../../src/training/index.js';
import type { CellResult } from '../../../src/training/train-pool.js';
import type { TrainCellTask } from '../../../src/training/train-task.js';
import { suiteContext } from '../../support/at-end.js';
import { ingest, testNode } from '../../support/node.js';
import { runProcess } from '../../support/process.js';
import { tempFolder } from '../../support/temp.js';
import { writeDate } from '../acquisition-files.js';
import { field } from '../synthetic-land.js';

const LINUX = process.platform === 'linux' ? false : 'the kernel holds the limit on Linux alone';

function childrenThatTrain(): number[] {
  const { stdout } = spawnSync('ps', ['--ppid', String(process.pid), '-o', 'pid=,args='], {
    encoding: 'utf8',
  });
  return stdout
    .split('\n')
    .filter((line) => line.includes('training/train-worker.bundle.js'))
    .map((line) => Number.parseInt(line, 10));
}

/** The cores that each training child may use, as reported by the kernel. */
function coresOfChildren(): string[] {
  return childrenThatTrain().flatMap((pid) => {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return /^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? [];
  });
}

async function resultsOf(
  tasks: TrainCellTask[],
  options: Partial<Parameters<typeof trainCells>[1]> = {},
): Promise<Map<string, CellResult>> {
  const results = new Map<string, CellResult>();
  for await (const result of trainCells(tasks, { engine: 'wasm', cores: 2, ...options }))
    results.set(result.id, result);
  return results;
}

function weightsOf(results: Map<string, CellResult>, id: string) {
  const result = results.get(id)!;
  assert.ok('trained' in result, JSON.stringify(result));
  return result.trained.files;
}

describe('a memory limit for each cell', { skip: LINUX }, () => {
  let a: TrainCellTask;
  let large: TrainCellTask;
  let b: TrainCellTask;
  const suite = suiteContext();
  before(async () => {
    const folder = await tempFolder(suite);
    const dateOf = (id: string, edge: number, seed: number) =>
      writeDate(folder, `${id}${seed}`, field(edge, edge, { seed, time: Date.UTC(2020, seed, 1) }));
    const task = (id: string, dates: TrainCellTask['dates']): TrainCellTask => ({
      ...{ id, model: 'ndvi', seed: 1, epochs: 2, dates },
    });
    const small = [dateOf('small', 128, 1), dateOf('small', 128, 2)];
    a = task('a', small);
    b = task('b', small);
    // The memory that dates use does not depend on their pixels, so all have the same.
    const date = dateOf('large', 1024, 1);
    large = task(
      'large',
      Array.from({ length: 8 }, (_, month) => ({ ...date, time: Date.UTC(2020, month, 1) })),
    );
  });

  test('is enforced, fails only one cell, and changes no bit of the others', {
    timeout: 240_000,
  }, async () => {
    const free = await resultsOf([a, b]);
    const held = await resultsOf([a, large, b], { limit: 230e6 });
    for (const id of ['a', 'b']) assert.deepEqual(weightsOf(held, id), weightsOf(free, id));
    const failed = held.get('large')!;
    assert.ok('error' in failed, 'the large place has trained');
    assert.equal(failed.error.code, 'TW_TRAIN_MEMORY');
    assert.match(failed.error.message, /230 MB .*--place-memory/);
    weightsOf(await resultsOf([{ ...large, epochs: 1 }], { limit: 2e9 }), 'large');
  });

  test('ends only the process of the cell that fails; the others share one', {
    timeout: 240_000,
  }, async () => {
    const c = { ...b, id: 'c' };
    const pids = new Map<string, number[]>();
    const onEpoch = ({ id }: { id: string }) => pids.set(id, childrenThatTrain());
    const results = await resultsOf([a, b, large, c], { limit: 230e6, cores: 1, onEpoch });
    assert.ok('error' in results.get('large')!);
    assert.equal(pids.get('a')!.length, 1);
    assert.deepEqual(pids.get('b'), pids.get('a'));
    assert.notDeepEqual(pids.get('c'), pids.get('a'));
    assert.deepEqual(weightsOf(results, 'c'), weightsOf(results, 'b'));
  });
});

test('the kernel pins each cell to one core, different from the next', { skip: LINUX }, async (t) => {
  const folder = await tempFolder(t);
  const dates = [writeDate(folder, 'date', field(128, 128, { seed: 1 }))];
  const tasks = ['a', 'b'].map((id) => ({ id, model: 'ndvi', seed: 1, epochs: 10_000, dates }));
  const seen = new Set<string>();
  const enough = new AbortController();
  const onEpoch = () => {
    for (const cores of coresOfChildren()) seen.add(cores);
    if (seen.size > 1 || allowedCpus().length < 2) enough.abort();
  };
  const training = trainCells(tasks, {
    ...{ engine: 'wasm', cores: 2, limit: 1e9, pinned: true },
    ...{ signal: enough.signal, onEpoch },
  });
  await assert.rejects(training.next(), { name: 'AbortError' });
  assert.ok(
    [...seen].every((cores) => allowedCpus().map(String).includes(cores)),
    [...seen].join(' '),
  );
});

test('a node trains the same models in the contained mode, and reports the mode', {
  timeout: 240_000,
}, async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'), { memory: 3e9 });
  const options = { size: { width: 800, height: 700 }, dates: SERIES_DATES.slice(2, 3) };
  for (const { path } of await writeSentinelLikeSeries(join(folder, 'scenes'), options))
    await ingest(node, { href: path, collection: 's', scale: 0.0001, maskBand: 5 });
  const inputs = { model: 'ndvi', epochs: 2, filter: { maxCloud: 30, minCoverage: 60 } };
  const train = (more: object) => runProcess<TrainResults>(node, 'train', { ...inputs, ...more });
  const partitioned = await train({ mode: 'partitioned' });
  const contained = await train({ mode: 'contained', placeMemory: 9e8 });
  assert.equal(contained.mode, 'contained');
  assert.ok(contained.models.length > 1, JSON.stringify(contained));
  const scores = ({ models }: TrainResults) => models.map(({ geocode, metrics }) => ({ geocode, metrics }));
  assert.deepEqual(scores(contained), scores(partitioned));
  const card = (await node.server.inject(`/models/${contained.models[0]!.id}/card.json`)).json();
  assert.equal(card.mode, 'contained');
  // A process cannot start with so little memory. The check rejects the other cells without a process, for the same reasons.
  const model = ['ndvi', 'ndmi'];
  const starved = await train({ model, mode: 'contained', placeMemory: 1e6 });
  assert.equal(starved.failed, 'TW_TRAIN_NOTHING');
  const { skipped } = await train({ model });
  assert.ok(skipped.length > 0);
  assert.deepEqual(starved.skipped, skipped);
});
