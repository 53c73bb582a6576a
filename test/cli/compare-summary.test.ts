/** Figures and texts of a comparison. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeDifferences } from '../../src/cli/compare/measures.js';
import { lossCurves, renderComparison } from '../../src/cli/compare/report.js';
import type { ComparedRun, Comparison } from '../../src/cli/compare/runs.js';
import { countWins, modeSummary } from '../../src/cli/compare/summary.js';
import { costTable, toCsv } from '../../src/cli/compare/tables.js';
import type { TrainingMode, TrainResults } from '../../src/training/index.js';
import { assertWellFormed } from '../demo-report/markup.js';

interface Place {
  mse: number;
  collection?: string;
  patches?: { train: number; validation: number };
  losses?: number[];
  values?: number;
}

function run(
  mode: TrainingMode,
  seed: number,
  places: Record<string, Place>,
  {
    sentBytes,
    failed = [] as TrainResults['failed'],
  }: { sentBytes?: number; failed?: TrainResults['failed'] } = {},
): ComparedRun {
  const metrics = (mse: number) => ({ train: { mse, r2: 0 }, validation: { mse, r2: 1 - mse } });
  const models = Object.entries(places).map(
    ([
      geocode,
      { mse, collection = 'c', patches = { train: 40, validation: 10 }, losses = [mse], values = 10 },
    ]) => ({
      ...{
        id: geocode,
        collection,
        grid: 'geohash' as const,
        geocode,
        model: 'ndvi',
        version: '1',
        epochs: 1,
      },
      ...{
        metrics: metrics(mse),
        baseline: { mean: { mse: 1, r2: 0 }, linear: { mse: 1, r2: 0 } },
        seconds: 1,
      },
      losses: losses.map((validation, i) => ({ epoch: i + 1, train: validation, validation })),
      ...{ patches, validationValues: values },
    }),
  );
  const pooled = { mse: Object.values(places).reduce((sum, { mse }) => sum + mse, 0) / models.length, r2: 0 };
  return {
    ...{ mode, seed, job: `${mode}${seed}`, seconds: 2, disturbedBy: [] },
    usage: {
      ...{ seconds: 2, cpuSeconds: 3, includesChildren: true, incomplete: [], trace: [] },
      ...(sentBytes !== undefined && { sentBytes }),
      nodes: [{ id: 'n', cpuSeconds: 3, peakMemoryBytes: 1e8 }],
    },
    results: {
      ...{ engine: 'wasm', mode, models, skipped: [], failed },
      pooled: { model: pooled, linear: pooled, mean: pooled },
    },
  };
}

const comparisonOf = (runs: ComparedRun[], more: Partial<Comparison> = {}): Comparison => ({
  ...{ model: 'ndvi', modes: ['partitioned', 'contained'], seeds: [1, 2, 3], runs, failed: [], ...more },
});

const page = (comparison: Comparison) =>
  renderComparison(comparison, {
    ...{ command: 'tilewright compare ndvi', generatedAt: '2026-01-01T00:00:00Z', target: 'http://a' },
    ...{ nodes: ['n'], software: '0.1.0' },
  });

test('modes are compared at the places that all runs have trained', () => {
  const hard = { mse: 0.9 };
  const failed = [{ geocode: 'u3', model: 'ndvi', code: 'TW_TRAIN_MEMORY', message: 'it took too much' }];
  const runs = [1, 2, 3].flatMap((seed) => [
    run('partitioned', seed, { u1: { mse: 0.01 }, u2: { mse: 0.01 }, u3: hard }),
    run('contained', seed, { u1: { mse: 0.02 }, u2: { mse: 0.02 } }, { failed }),
  ]);
  const comparison = comparisonOf(runs);
  assert.equal(modeSummary(comparison, 'partitioned').means.MSE!.median, 0.01);
  assert.equal(modeSummary(comparison, 'contained').means.MSE!.median, 0.02);
  assert.deepEqual(modeSummary(comparison, 'partitioned').pooled, {});
  assert.deepEqual(countWins(comparison, 'partitioned', 'contained', 'MSE'), { won: 6, of: 6 });
  assert.deepEqual(describeDifferences(comparison), [
    'contained, seed 1 did not train a place of partitioned, seed 1: u3',
    'contained, seed 2 did not train a place of partitioned, seed 1: u3',
    'contained, seed 3 did not train a place of partitioned, seed 1: u3',
  ]);
  const html = page(comparison);
  assertWellFormed(html);
  assert.match(html, /The runs did not train on the same data/);
  assert.match(html, /contained: u3: it took too much \[TW_TRAIN_MEMORY\]/);
});

test('tiles that are added during a comparison are detected by the number of patches', () => {
  const more = { mse: 0.1, patches: { train: 60, validation: 15 } };
  const runs = [run('partitioned', 1, { u1: { mse: 0.1 } }), run('contained', 1, { u1: more })];
  assert.match(
    describeDifferences(comparisonOf(runs)).join(),
    /^contained, seed 1 has other patches .* at u1$/,
  );
  assert.deepEqual(describeDifferences(comparisonOf(runs.slice(0, 1))), []);
  // Scores of other patches do not compare as one set.
  assert.deepEqual(modeSummary(comparisonOf(runs), 'partitioned').pooled, {});
});

test('one cell in two collections is two places, in every run', () => {
  const both = run('partitioned', 1, { u1: { mse: 0.1 } });
  both.results.models.push({ ...both.results.models[0]!, collection: 'd' });
  // The other run has trained one of them only.
  const one = run('contained', 1, { u1: { mse: 0.2 } });
  const comparison = comparisonOf([both, one]);
  assert.equal(modeSummary(comparison, 'contained').means.MSE!.median, 0.2);
  const csv = toCsv(comparison);
  assert.match(csv, /,c u1,MSE,,0\.1\r\n/);
  assert.match(csv, /,d u1,MSE,,0\.1\r\n/);
});

test('bytes that are not more than those of idle nodes make no ratio', () => {
  const runs = [1, 2, 3].flatMap((seed) => [
    run('partitioned', seed, { u1: { mse: 0.1 } }, { sentBytes: 0 }),
    run('contained', seed, { u1: { mse: 0.1 } }, { sentBytes: 0 }),
  ]);
  for (const idleBytesPerSecond of [0, 10]) {
    const { rows } = costTable(comparisonOf(runs, { idleBytesPerSecond }));
    const [row] = rows.filter(([title]) => title!.startsWith('bytes'));
    assert.deepEqual(row!.at(-1), 'within the spread');
    const [, main] = page(comparisonOf(runs, { idleBytesPerSecond })).split('<main>');
    assert.doesNotMatch(main!, /NaN|Infinity|-0\./);
  }
});

test('the curve of many places counts each by its values, and one that has stopped by its last epoch', () => {
  const runs = [
    run('partitioned', 1, {
      u1: { mse: 0.1, losses: [4, 2], values: 30 },
      u2: { mse: 0.1, losses: [8], values: 10 },
    }),
  ];
  assert.deepEqual(lossCurves(comparisonOf(runs))[0]!.validation, [5, 3.5]);
});

test('without the child processes of a server, CPU time and memory are omitted', () => {
  const alone = run('partitioned', 1, { u1: { mse: 0.1 } });
  alone.usage.includesChildren = false;
  const comparison = comparisonOf([alone]);
  assert.deepEqual(
    costTable(comparison).rows.map(([title]) => title),
    ['time'],
  );
  assert.doesNotMatch(toCsv(comparison), /cpu|memory/);
  assert.match(page(comparison), /CPU and memory are omitted/);
});

test('names from outside are text, in the page and in a spreadsheet', () => {
  const name = '=HYPERLINK("http://x")<script>';
  const comparison = comparisonOf([run('partitioned', 1, { [name]: { mse: 0.1 } })]);
  assert.doesNotMatch(page(comparison), /<script>/);
  assert.match(toCsv(comparison), /,"'=HYPERLINK\(""http:\/\/x""\)<script>",MSE,/);
});
