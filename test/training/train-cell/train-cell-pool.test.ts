import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type AcquisitionFiles, trainCells } from '../../../src/training/index.js';
import { modelCard } from '../../../src/training/model-card.js';
import type { CellProgress, CellResult } from '../../../src/training/train-pool.js';
import type { TrainCellTask } from '../../../src/training/train-task.js';
import { children, childrenGone } from '../../support/child-processes.js';
import { imageFile } from '../../support/image-file.js';
import { onlyNightly } from '../../support/nightly.js';
import { writeDate } from '../acquisition-files.js';
import { field } from '../synthetic-land.js';

const folder = mkdtempSync(join(tmpdir(), 'tilewright-trainer-'));
after(() => rmSync(folder, { recursive: true }));

let dates: AcquisitionFiles[];
before(() => {
  dates = [1, 2].map((seed) =>
    writeDate(folder, `date${seed}`, field(128, 128, { seed, time: Date.UTC(2020, seed, 1) })),
  );
});

function task(id: string, change: Partial<TrainCellTask> = {}): TrainCellTask {
  const validationFrom = Date.UTC(2020, 2, 1);
  return { id, model: 'ndvi', seed: 1, epochs: 2, dates, validationFrom, ...change };
}

async function resultsOf(
  tasks: TrainCellTask[],
  options: Partial<Parameters<typeof trainCells>[1]> = {},
): Promise<Map<string, CellResult>> {
  const results = new Map<string, CellResult>();
  for await (const result of trainCells(tasks, { engine: 'wasm', cores: 2, ...options })) {
    results.set(result.id, result);
  }
  return results;
}

const hasProc = process.platform === 'linux';

describe('trainCells', { timeout: 400_000 }, () => {
  it('trains several cells in parallel, with the same results in any process', async () => {
    const progress: CellProgress[] = [];
    const results = await resultsOf([task('a'), task('b'), task('c'), task('other', { seed: 2 })], {
      onEpoch: (epoch) => progress.push(epoch),
    });
    assert.deepEqual([...results.keys()].sort(), ['a', 'b', 'c', 'other']);
    const trained = (id: string) => {
      const result = results.get(id)!;
      assert.ok('trained' in result, JSON.stringify(result));
      return result.trained;
    };
    assert.deepEqual(trained('a').files, trained('b').files);
    assert.deepEqual(trained('a').files, trained('c').files);
    assert.notDeepEqual(trained('a').files, trained('other').files);
    assert.deepEqual(
      progress.filter(({ id }) => id === 'b').map(({ id: _, ...loss }) => loss),
      trained('b').losses,
    );
    assert.match(trained('a').split, /1 date from 2020-03-01; training: 1 earlier date$/);
    assert.ok(trained('a').bytesRead > 100_000);
  });

  it('skips cells that cannot be trained, and fails only damaged ones', async () => {
    const small = writeDate(folder, 'small', field(64, 64));
    const path = join(folder, 'broken.tif');
    writeFileSync(path, 'II*\0 and no more');
    const broken = { ...dates[0]!, mask: imageFile(path) };
    const results = await resultsOf([
      task('small', { dates: [small] }),
      task('broken', { dates: [broken] }),
      task('unknown', { model: 'ndwi' }),
      task('good'),
    ]);
    assert.match((results.get('small') as { skipped: string }).skipped, /at least 32 are needed/);
    const code = (id: string) => (results.get(id) as { error: { code: string } }).error.code;
    assert.match(code('broken'), /^TW_RASTER_/);
    assert.equal(code('unknown'), 'TW_TRAIN_MODEL');
    assert.ok('trained' in results.get('good')!);
  });

  it('reads a cell once for all of its models, with the same results as separate runs', {
    skip: onlyNightly,
  }, async () => {
    const cell = (name: string, seed: number) => [
      writeDate(folder, name, field(320, 320, { seed, time: Date.UTC(2020, 1, 1) })),
    ];
    const tasksOf = (name: string, dates: AcquisitionFiles[]) =>
      ['ndvi', 'ndmi'].map((model) => task(`${name} ${model}`, { cell: name, model, dates, epochs: 1 }));
    const [near, far] = [cell('near', 3), cell('far', 4)] as const;
    const tasks = [...tasksOf('near', near), ...tasksOf('far', far)];
    const alone = await resultsOf(tasks.map(({ cell: _, ...one }) => one));

    // The files that both models need are deleted as soon as the first model of a cell is trained.
    const order: string[] = [];
    const together = await resultsOf([tasks[0]!, tasks[2]!, tasks[1]!, tasks[3]!], {
      cores: 1,
      onEpoch: ({ id }) => {
        order.push(id);
        const [date] = id.startsWith('near') ? near : far;
        for (const path of [date!.bands.red!.path, date!.mask.path]) rmSync(path, { force: true });
      },
    });
    assert.deepEqual(order, ['near ndvi', 'near ndmi', 'far ndvi', 'far ndmi']);
    for (const { id } of tasks) {
      const [one, other] = [alone.get(id)!, together.get(id)!];
      assert.ok('trained' in one && 'trained' in other, JSON.stringify(other));
      const { seconds: _, ...expected } = one.trained;
      const { seconds: __, ...trained } = other.trained;
      assert.deepEqual(trained, expected);
    }
  });

  it('reads a cell again rather than leave a core idle', { skip: !hasProc }, async () => {
    const busy: number[] = [];
    const results = await resultsOf([task('a', { cell: 'one' }), task('b', { cell: 'one', seed: 2 })], {
      onEpoch: () => busy.push(children().length),
    });
    for (const result of results.values()) assert.ok('trained' in result);
    assert.deepEqual(busy, [2, 2, 2, 2]);
  });

  it('replaces a killed child, and retries its cell', { skip: !hasProc }, async () => {
    let killed = false;
    const results = await resultsOf([task('a'), task('b')], {
      cores: 1,
      onEpoch: ({ id }) => {
        if (killed || id !== 'a') return;
        killed = true;
        process.kill(children()[0]!, 'SIGKILL');
      },
    });
    assert.ok(killed);
    assert.ok('trained' in results.get('a')!);
    assert.ok('trained' in results.get('b')!);
  });

  it('fails only the cell whose child is killed twice', { skip: !hasProc }, async () => {
    const results = await resultsOf([task('a'), task('b')], {
      cores: 1,
      onEpoch: ({ id }) => {
        const [child] = children();
        // The progress message of the second epoch may arrive after the child has ended.
        if (id === 'a' && child !== undefined) process.kill(child, 'SIGKILL');
      },
    });
    const { error } = results.get('a') as { error: { code: string; message: string } };
    assert.equal(error.code, 'TW_TRAIN_CRASHED');
    assert.match(error.message, /SIGKILL/);
    assert.ok('trained' in results.get('b')!);
  });

  it('ends its children when it is cancelled', { skip: !hasProc }, async () => {
    const abort = new AbortController();
    const reason = new Error('enough');
    await assert.rejects(
      resultsOf([task('a', { epochs: 10_000 }), task('b', { epochs: 10_000 })], {
        signal: abort.signal,
        onEpoch: () => abort.abort(reason),
      }),
      reason,
    );
    await childrenGone();
    await assert.rejects(resultsOf([task('a')], { signal: abort.signal }), reason);
  });

  it('ends its children when its results are no longer wanted', { skip: !hasProc }, async () => {
    const tasks = [task('a'), task('b', { epochs: 10_000 })];
    for await (const result of trainCells(tasks, { engine: 'wasm', cores: 2 })) {
      assert.equal(result.id, 'a');
      break;
    }
    await childrenGone();
  });

  it('fails each cell if the engine does not load', async () => {
    const results = await resultsOf([task('a')], { engine: 'tfjs-node-gpu' });
    // Machines that have this engine train with it.
    const result = results.get('a')!;
    assert.ok('trained' in result || ('error' in result && result.error.code === 'TW_TRAIN_ENGINE'));
  });

  it('returns nothing without cells', async () => {
    assert.equal((await resultsOf([])).size, 0);
  });

  it('makes the card of a trained cell', async () => {
    const result = (await resultsOf([task('a')])).get('a')!;
    assert.ok('trained' in result);
    const { trained } = result;
    const cardOf = (model: string, mode: 'partitioned' | 'distributed') =>
      modelCard(
        {
          model,
          collection: 'landsat-c2-l2',
          grid: 'geohash',
          geocode: '9q8yy',
          version: 'v1',
          mode,
          job: 'j1',
          filter: { maxCloud: 20 },
          engine: { name: 'wasm', version: '4.22.0', why: [] },
          seed: 1,
          softwareVersion: '0.1.0',
          tiles: [
            { id: 'tile', version: 'v0', start: Date.UTC(2020, 1, 1), end: Date.UTC(2020, 1, 1) },
            { id: 'composite', version: 'v0', start: Date.UTC(2020, 2, 1), end: Date.UTC(2020, 2, 31) },
          ],
          createdAt: Date.UTC(2026, 0, 1),
        },
        trained,
      );
    const card = cardOf('ndvi', 'partitioned');
    assert.deepEqual(card.data, [
      { id: 'tile', version: 'v0', datetime: '2020-02-01T00:00:00.000Z' },
      {
        ...{ id: 'composite', version: 'v0' },
        ...{ datetime: '2020-03-01T00:00:00.000Z', end: '2020-03-31T00:00:00.000Z' },
      },
    ]);
    assert.equal(card.parent, null);
    assert.equal(card.losses.length, card.epochs);
    assert.ok(!('files' in card));
    assert.equal(card.predictions!.truth.length, card.predictions!.predicted.length);
    assert.ok(card.predictions!.truth.length >= 8);
    assert.deepEqual(JSON.parse(JSON.stringify(card)), card);
    assert.ok(!('batchNorm' in card), 'a net without it');
    assert.equal(cardOf('ndmi', 'partitioned').batchNorm, 'batch');
    assert.equal(cardOf('ndmi', 'distributed').batchNorm, 'local');
  });
});

it('importing the parts training and engines loads no TensorFlow', () => {
  const indexes = ['training', 'engines'].map((part) =>
    fileURLToPath(new URL(`../../../src/${part}/index.js`, import.meta.url)),
  );
  const script = `
    import { createRequire } from 'node:module';
    for (const index of ${JSON.stringify(indexes)}) await import(index);
    const loaded = Object.keys(createRequire(import.meta.url).cache).filter((file) => file.includes('tensorflow'));
    process.stdout.write(String(loaded.length));`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  assert.equal(printed, '0');
});
