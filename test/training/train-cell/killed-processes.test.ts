/**
 * If a child process of any kind is killed or exits, busy or idle, its task fails with an error code and the next task succeeds.
 */
import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { loadEngine } from '../../../src/engines/load.js';
import { selectEngine } from '../../../src/engines/select.js';
import { RankProcess } from '../../../src/training/distributed-mode.js';
import { type AcquisitionFiles, getModelSpec, trainCells } from '../../../src/training/index.js';
import { buildModel } from '../../../src/training/models/network.js';
import { saveModel } from '../../../src/training/models/weights.js';
import { PredictPool } from '../../../src/training/predict-process.js';
import type { PredictTask } from '../../../src/training/predict-tile.js';
import { untrainedModel } from '../../../src/training/remote-training.js';
import type { CellResult } from '../../../src/training/train-pool.js';
import type { TrainCellTask } from '../../../src/training/train-task.js';
import { atEnd } from '../../support/at-end.js';
import { children, childrenGone, HAS_PROC } from '../../support/child-processes.js';
import { tempFolder } from '../../support/temp.js';
import { writeDate } from '../acquisition-files.js';
import { socketPair } from '../distributed/process-groups.js';
import { field } from '../synthetic-land.js';

/** Moments at which a child loads its code, loads its engine or works, on an idle machine, in ms. */
const MOMENTS = [0, 50, 150];

let folder: string;
let dates: AcquisitionFiles[];
/** A module that ends each Node process that loads it, with exit code 3. */
let exiting: string;

/** Kills a child of this process, if it has one. */
function killChild(): void {
  const [child] = children();
  if (child !== undefined) process.kill(child, 'SIGKILL');
}

/** Kills the first child of this process, `wait` ms after it appears. */
async function killFirst(wait: number): Promise<void> {
  while (children().length === 0) await sleep(1);
  await sleep(wait);
  killChild();
}

/** Makes the processes that `work` starts exit at once, by themselves. */
async function withExitingChildren<T>(work: () => Promise<T>): Promise<T> {
  const { NODE_OPTIONS } = process.env;
  process.env.NODE_OPTIONS = `--require ${exiting}`;
  try {
    return await work();
  } finally {
    if (NODE_OPTIONS === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = NODE_OPTIONS;
  }
}

// The time limit fails a task that never settles, and a child that does not end.
describe('child processes that end', { timeout: 400_000, skip: !HAS_PROC && 'needs /proc' }, () => {
  const cleanUp: (() => Promise<void>)[] = [];
  before(async () => {
    folder = await tempFolder({ after: (work) => cleanUp.push(work as () => Promise<void>) });
    dates = [1, 2].map((seed) =>
      writeDate(folder, `date${seed}`, field(128, 128, { seed, time: Date.UTC(2020, seed, 1) })),
    );
    exiting = join(folder, 'exiting.cjs');
    writeFileSync(exiting, 'process.exit(3);');
  });
  after(async () => {
    for (const work of cleanUp) await work();
  });
  afterEach(childrenGone);

  describe('that predict', () => {
    let task: PredictTask;
    const never = new AbortController().signal;
    before(async () => {
      const { tf } = await loadEngine('wasm');
      const model = buildModel(tf, getModelSpec('ndvi'), 1);
      const files = await saveModel(tf, model);
      model.dispose();
      const writeFile = (name: 'model.json' | 'weights.bin') => {
        const path = join(folder, name);
        writeFileSync(path, files[name]);
        const file = { name, bytes: files[name].length, crc32: crc32(files[name]) };
        return { path, file, model: { id: 'ndvi_s_gu0', version: 'v1' } };
      };
      task = {
        tile: { grid: 'geohash', geocode: 'u0', metadata: {} },
        model: {
          name: 'ndvi',
          topology: writeFile('model.json'),
          weights: writeFile('weights.bin'),
        },
        date: dates[0]!,
        groups: { '128x128': '10m' },
      };
    });
    const poolOf = (t: TestContext, threads: number) => {
      const pool = new PredictPool('wasm', threads);
      atEnd(t, () => pool.close());
      return pool;
    };
    const works = async (pool: PredictPool) => assert.ok((await pool.make(task, never))!.files.length > 0);

    for (const wait of MOMENTS)
      test(`busy for ${wait} ms: one tile fails, the others are made`, async (t) => {
        const pool = poolOf(t, 2);
        const made = Promise.allSettled(Array.from({ length: 5 }, () => pool.make(task, never)));
        await killFirst(wait);
        const failed = (await made).flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
        // After the shortest wait a child is certainly busy.
        assert.ok(failed.length <= 1 && (failed.length === 1 || wait > 0), failed.join('\n'));
        for (const { code, message } of failed)
          assert.match(`${code} ${message}`, /^TW_TRAIN_PREDICT .*its process ended with SIGKILL/);
        await works(pool);
        pool.close();
      });

    test('idle: no tile fails', async (t) => {
      const pool = poolOf(t, 1);
      for (let times = 0; times < 3; times++) {
        await works(pool);
        const [child, ...others] = children();
        assert.ok(child !== undefined && others.length === 0);
        process.kill(child, 'SIGKILL');
        // The entry in /proc disappears when this process has noticed the end of the child.
        while (existsSync(`/proc/${child}`)) await sleep(5);
      }
      await works(pool);
      pool.close();
    });

    test('by themselves: their tiles fail, later ones succeed', async (t) => {
      const pool = poolOf(t, 2);
      await withExitingChildren(async () => {
        for (const one of await Promise.allSettled([1, 2, 3].map(() => pool.make(task, never)))) {
          assert.ok(one.status === 'rejected');
          assert.match(`${one.reason.code} ${one.reason.message}`, /^TW_TRAIN_PREDICT .*exit code 3/);
        }
      });
      await works(pool);
      pool.close();
    });

    test('200 tasks leave no listener, process or warning', async (t) => {
      const warnings: Error[] = [];
      const onWarning = (warning: Error) => warnings.push(warning);
      process.on('warning', onWarning);
      atEnd(t, () => process.off('warning', onWarning));
      const { signal } = new AbortController();
      const pool = poolOf(t, 2);
      const broken = { ...task, model: { ...task.model, name: 'absent' } };
      for (let round = 0; round < 50; round++) {
        const all = await Promise.allSettled([1, 2, 3, 4].map(() => pool.make(broken, signal)));
        assert.ok(all.every((one) => one.status === 'rejected'));
        assert.ok(children().length <= 2);
      }
      assert.equal(getEventListeners(signal, 'abort').length, 0);
      assert.deepEqual(warnings, []);
      pool.close();
    });
  });

  describe('that train a cell', () => {
    const taskOf = (id: string): TrainCellTask => ({ id, model: 'ndvi', seed: 1, epochs: 2, dates });
    const resultsOf = async (ids: string[], options: Partial<Parameters<typeof trainCells>[1]> = {}) => {
      const results = new Map<string, CellResult>();
      for await (const one of trainCells(ids.map(taskOf), { engine: 'wasm', cores: 1, ...options }))
        results.set(one.id, one);
      return results;
    };

    for (const wait of MOMENTS)
      test(`busy for ${wait} ms: the cell is tried again`, async () => {
        const results = resultsOf(['a', 'b']);
        await killFirst(wait);
        for (const one of (await results).values()) assert.ok('trained' in one, JSON.stringify(one));
      });

    test('idle: that is not an attempt of the next cell', async () => {
      let kills = 0;
      const kill = () => {
        killChild();
        kills++;
      };
      const results = await resultsOf(['a', 'b'], {
        async prepare({ id }) {
          if (id !== 'b') return;
          // The child of `a` has nothing to do until this resolves.
          kill();
          await childrenGone();
        },
        onEpoch: ({ id, epoch }) => {
          if (id === 'b' && epoch === 1 && kills === 1) kill();
        },
      });
      assert.equal(kills, 2);
      for (const one of results.values()) assert.ok('trained' in one, JSON.stringify(one));
    });

    for (const [limit, code] of [
      [undefined, 'TW_TRAIN_CRASHED'],
      [2e9, 'TW_TRAIN_MEMORY'],
    ] as const)
      test(`by themselves: the cell fails with ${code}`, async () => {
        const results = await withExitingChildren(() => resultsOf(['a'], { limit }));
        const { error } = results.get('a') as { error: { code: string; message: string } };
        assert.equal(error.code, code);
        assert.match(error.message, /\(exit code 3\)/);
      });

    test('by an error of the callback: the caller receives it', async () => {
      const error = new Error('the callback is broken');
      const onEpoch = () => {
        throw error;
      };
      await assert.rejects(resultsOf(['a', 'b'], { onEpoch }), error);
    });
  });

  describe('of a distributed training', () => {
    const task = () => ({ model: 'ndvi', places: [{ id: 'a', geocode: 'u0', tiles: [], dates }] });
    const training = (epochs: number) => ({
      ...{ index: 0, members: ['n'], seed: 1, epochs },
      checkpoint: { folder, task: 'a training' },
    });
    const memberOf = (t: TestContext) => {
      const member = new RankProcess('n', 'wasm', 1);
      atEnd(t, () => member.end());
      return member;
    };
    const fellOut = (how: string) => ({
      code: 'TW_TRAIN_RING',
      message: new RegExp(`node n was lost .*\\(${how}\\)`),
    });

    for (const wait of MOMENTS)
      test(`busy for ${wait} ms: the node is lost`, async (t) => {
        const member = memberOf(t);
        // If the reading ends in time, it is followed by a training that does not.
        const all = member.read(task()).then(() => member.train(training(100_000), undefined, {}));
        const fails = assert.rejects(all, fellOut('SIGKILL'));
        await killFirst(wait);
        await fails;
      });

    test('in an epoch: the node is lost', async (t) => {
      const member = memberOf(t);
      await member.read(task());
      const trained = member.train(training(100_000), undefined, { onEpoch: killChild });
      await assert.rejects(trained, fellOut('SIGKILL'));
      await assert.rejects(member.shutdown(), fellOut('SIGKILL'));
    });

    test('idle: the node is lost, and its neighbours notice', async (t) => {
      const member = memberOf(t);
      await member.read(task());
      killChild();
      await childrenGone();
      await sleep(50);
      const [[before, previous], [behind, next]] = [await socketPair(), await socketPair()];
      const members = { index: 0, members: ['n', 'other'] };
      const train = member.train({ ...training(2), ...members }, { previous, next }, {});
      await assert.rejects(train, fellOut('SIGKILL'));
      for (const neighbour of [before, behind])
        if (!neighbour.closed) await once(neighbour.resume(), 'close');
    });

    test('by themselves: the node is lost, and takes part in the next training', async (t) => {
      await withExitingChildren(() => assert.rejects(memberOf(t).read(task()), fellOut('exit code 3')));
      const member = memberOf(t);
      assert.deepEqual((await member.read(task())).usable, ['a']);
      const trained = await member.train(training(2), undefined, {});
      assert.ok(trained.files!['weights.bin'].length > 0);
      await member.shutdown();
      member.end();
    });
  });

  describe('that build an untrained model', () => {
    const blank = { model: 'ndvi', seed: 1 };
    const build = (signal = new AbortController().signal) => untrainedModel(blank, signal);
    const failed = (how: string) => ({
      code: 'TW_TRAIN_FAILED',
      message: new RegExp(`the model was not built \\(${how}\\)`),
    });

    test('busy, by themselves or aborted: that fails, and the next is built', async () => {
      for (const wait of MOMENTS) {
        // On a fast machine the model may be built in time.
        const files = build().catch((error) => assert.rejects(Promise.reject(error), failed('SIGKILL')));
        while (children().length === 0) await sleep(1);
        await sleep(wait);
        for (const child of children()) process.kill(child, 'SIGKILL');
        const built = await files;
        assert.ok(!built || wait > 0);
        await childrenGone();
      }
      await withExitingChildren(() => assert.rejects(build(), failed('exit code 3')));
      const abort = new AbortController();
      const aborted = assert.rejects(build(abort.signal), { name: 'AbortError' });
      abort.abort();
      await aborted;
      assert.ok((await build())['weights.bin'].length > 0);
    });
  });

  describe('that try an engine', () => {
    test('busy or by themselves: the engine is refused, and tried again the next time', async () => {
      const refused = (how: string) => ({
        code: 'TW_TRAIN_ENGINE',
        message: new RegExp(`engine wasm cannot be used: it ended with ${how};`),
      });
      for (const wait of [0, 50]) {
        const selected = assert.rejects(selectEngine({ engine: 'wasm' }), refused('SIGKILL'));
        await killFirst(wait);
        await selected;
      }
      await withExitingChildren(() =>
        assert.rejects(selectEngine({ engine: 'wasm' }), refused('exit code 3')),
      );
      assert.equal((await selectEngine({ engine: 'wasm' })).name, 'wasm');
    });
  });
});
