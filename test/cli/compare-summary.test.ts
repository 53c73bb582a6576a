/** Figures and texts of a comparison. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeDifferences, trainingWarnings } from '../../src/cli/compare/measures.js';
import { lossCurves, renderComparison } from '../../src/cli/compare/report.js';
import type { ComparedRun, Comparison } from '../../src/cli/compare/runs.js';
import { modeSummary, verdicts } from '../../src/cli/compare/summary.js';
import {
  accuracyTable,
  costTable,
  questionTable,
  toCsv,
  verdictTable,
} from '../../src/cli/compare/tables.js';
import type { TrainingMode, TrainResults } from '../../src/training/index.js';
import { questionScores } from '../../src/training/questions.js';
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
      ...{ patches, datedPlaces: 1, validationValues: values },
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
  assert.equal(modeSummary(comparison, 'partitioned').medians.MSE!.median, 0.01);
  assert.equal(modeSummary(comparison, 'contained').medians.MSE!.median, 0.02);
  assert.deepEqual(modeSummary(comparison, 'partitioned').pooled, {});
  const [verdict] = verdicts(comparison);
  assert.deepEqual([verdict!.better, verdict!.places], [2, 2], 'each place once, not once for each seed');
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

test('the report has the warnings of the trainings, each once', () => {
  const warned = run('partitioned', 1, { u1: { mse: 0.1 } });
  warned.results.warnings = ['tiles cover up to 31 days'];
  const comparison = comparisonOf([warned, { ...warned, seed: 2 }]);
  const html = page(comparison);
  assertWellFormed(html);
  assert.equal(html.split('tiles cover up to 31 days').length, 2);
  assert.deepEqual(trainingWarnings(comparison), ['tiles cover up to 31 days']);
  assert.doesNotMatch(page(comparisonOf([run('partitioned', 1, { u1: { mse: 0.1 } })])), /Warnings/);
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
  assert.equal(verdicts(comparisonOf(runs))[0]!.places, 0, 'nor do scores of the place');
});

test('one cell in two collections is two places, in every run', () => {
  const both = run('partitioned', 1, { u1: { mse: 0.1 } });
  both.results.models.push({ ...both.results.models[0]!, collection: 'd' });
  // The other run has trained one of them only.
  const one = run('contained', 1, { u1: { mse: 0.2 } });
  const comparison = comparisonOf([both, one]);
  assert.equal(modeSummary(comparison, 'contained').medians.MSE!.median, 0.2);
  const csv = toCsv(comparison);
  assert.match(csv, /,c u1,MSE,,0\.1,\r\n/);
  assert.match(csv, /,d u1,MSE,,0\.1,\r\n/);
});

test('bytes that are not more than those of idle nodes are 0, and make no ratio', () => {
  const runs = [1, 2, 3].flatMap((seed) => [
    run('partitioned', seed, { u1: { mse: 0.1 } }, { sentBytes: 0 }),
    run('contained', seed, { u1: { mse: 0.1 } }, { sentBytes: 0 }),
  ]);
  for (const idleBytesPerSecond of [0, 10]) {
    const { rows } = costTable(comparisonOf(runs, { idleBytesPerSecond }));
    const [row] = rows.filter(([title]) => title!.startsWith('bytes'));
    assert.deepEqual(row!.slice(1), ['0 B', '0 B', '-']);
    assert.match(toCsv(comparisonOf(runs, { idleBytesPerSecond })), /,net bytes sent,,0,\r\n/);
    const [, main] = page(comparisonOf(runs, { idleBytesPerSecond })).split('<main>');
    assert.doesNotMatch(main!, /NaN|Infinity|-0\./);
  }
});

const NAMES = Array.from({ length: 9 }, (_, i) => `u${i}`);

/** Errors of nine places, times a factor that differs a little between places and seeds. */
const places = (factor: number, seed: number, extreme = 1): Record<string, Place> =>
  Object.fromEntries(
    NAMES.map((name, i) => [
      name,
      { mse: 0.01 * (i + 1) * factor * (1 + 0.01 * ((i * seed) % 3)) * (i === 4 ? extreme : 1) },
    ]),
  );

test('a verdict counts each place once, in the table, the CSV and the page, for every pair of modes', () => {
  const runs = [1, 2, 3].flatMap((seed) => [
    run('partitioned', seed, places(1, seed)),
    run('distributed', seed, places(1.3, seed)),
    // One place of nine has a hundred times the error, so the pooled error is many times larger.
    run('regional', seed, places(seed === 2 ? 0.99 : 1.02, seed, 100)),
  ]);
  const comparison = comparisonOf(runs, { modes: ['partitioned', 'distributed', 'regional'] });
  assert.deepEqual(
    verdictTable(comparison).rows.map(([compared, measure, , better, verdict]) => [
      ...[compared, measure, better, verdict],
    ]),
    [
      ['partitioned / distributed', 'MSE', '9 of 9 places', 'better'],
      ['partitioned / regional', 'MSE', '9 of 9 places', 'better'],
      ['distributed / regional', 'MSE', '1 of 9 places', 'cannot be distinguished'],
    ],
  );
  const csv = toCsv(comparison).split('\r\n');
  const [first, , third] = verdicts(comparison);
  assert.ok(csv.includes(`partitioned / distributed,,,all places,MSE error ratio,,${first!.ratio},better`));
  const [low] = third!.interval!;
  assert.ok(
    csv.includes(
      `distributed / regional,,,all places,"MSE error ratio, low",,${low},cannot be distinguished`,
    ),
  );
  const html = page(comparison);
  assertWellFormed(html);
  for (const row of verdictTable(comparison).rows)
    for (const cell of row) assert.ok(html.includes(`>${cell}</t`), cell);
  // A seed that one mode lacks is left out of both.
  const lacking = [
    ...runs.slice(0, 6),
    run('partitioned', 3, places(1e3, 3)),
    run('distributed', 3, places(1.3, 3)),
  ];
  const [, pair] = verdicts({ ...comparison, runs: lacking });
  assert.deepEqual(pair, verdicts({ ...comparison, runs: runs.slice(0, 6) })[1]);
});

test('a verdict on many seeds of few places is refused', () => {
  const few = (factor: number, seed: number) =>
    Object.fromEntries(Object.entries(places(factor, seed)).slice(0, 5));
  const seeds = Array.from({ length: 20 }, (_, i) => i + 1);
  const runs = seeds.flatMap((seed) => [
    run('partitioned', seed, few(1, seed)),
    run('contained', seed, few(9, seed)),
  ]);
  const comparison = comparisonOf(runs, { seeds });
  assert.deepEqual(
    verdictTable(comparison).rows.map((row) => row.slice(3)),
    [['5 of 5 places', 'too few places']],
  );
});

test('scores with training ground and R2 have no verdict; errors of images have', () => {
  const withImages = (one: ComparedRun, psnr: number, ssim: number, msSsim: number) => {
    const images = { psnr: 3, ssim: 3, msSsim: 3 };
    for (const { metrics } of one.results.models) {
      Object.assign(metrics.validation, { images, psnr, ssim });
      metrics.tile = { images, psnr, ssim, msSsim: { value: msSsim, scales: 5 }, dates: [] };
    }
    return one;
  };
  const runs = [1, 2].flatMap((seed) => [
    withImages(run('partitioned', seed, places(1, seed)), 30, 0.9, 0.99),
    withImages(run('contained', seed, places(1, seed)), 20, 0.8, 0.1),
  ]);
  const comparison = comparisonOf(runs, { model: 'cloud-removal' });
  assert.deepEqual(
    verdictTable(comparison).rows.map(([, measure, ratio, , verdict]) => [measure, ratio, verdict]),
    [
      ['MSE', '1 (1 to 1)', 'the same'],
      // 10 dB are a tenth of the error, and 1 - SSIM is half.
      ['PSNR', '0.1 (0.1 to 0.1)', 'better'],
      ['SSIM', '0.5 (0.5 to 0.5)', 'better'],
    ],
  );
  const rows = accuracyTable(comparison).rows.map(([title]) => title);
  for (const title of ['RMSE, all patches as one set', 'RMSE, median of places', 'MS-SSIM, median of places'])
    assert.ok(rows.includes(title), title);
  assert.deepEqual(
    verdicts(comparisonOf(runs)).map(({ measure }) => measure),
    ['MSE'],
  );
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

test('the questions of the first run of each mode are shown, in the table and the page', () => {
  const asked = (error: number) =>
    questionScores({
      a: [
        {
          ...{ question: 'otherDates', datetime: '2024-06-01T10:00:00Z', values: 10 },
          ...{ model: 10 * error, mean: 2, history: 1, nearest: 3, linear: 4 },
        },
      ],
    });
  const runs = [1, 2].flatMap((seed) =>
    (['partitioned', 'regional'] as const).map((mode, i) => {
      const one = run(mode, seed, places(1, seed));
      return { ...one, results: { ...one.results, questions: asked(seed * (i + 1)) } };
    }),
  );
  const comparison = comparisonOf(runs, { modes: ['partitioned', 'regional'] });
  const { titles, rows } = questionTable(comparison);
  assert.deepEqual(titles.slice(0, 3), ['', 'question', 'MSE']);
  assert.deepEqual(
    rows.map((row) => row.slice(0, 4)),
    [
      ['partitioned', 'other dates', '1.00e+0', 'too few: 1.00e+0'],
      ['regional', 'other dates', '2.00e+0', 'too few: 2.00e+0'],
    ],
  );
  assert.ok(page(comparison).includes('Other ground and other dates'));
  const without = comparisonOf([run('partitioned', 1, places(1, 1))]);
  assert.deepEqual(questionTable(without).rows, []);
  assert.ok(!page(without).includes('Other ground and other dates'));
});

test('dates whose periods overlap count as one in intervals', () => {
  const scoresOn = (datetimes: string[]) => {
    const errors = { values: 10, model: 1, mean: 2, history: 2, nearest: 2, linear: 2 };
    const rows = datetimes.map((datetime) => ({ question: 'otherDates' as const, datetime, ...errors }));
    return questionScores({ a: rows })[0]!;
  };
  const starts = Array.from({ length: 7 }, (_, month) => `2020-0${month + 1}-01T00:00:00.000Z`);
  const rolling = scoresOn(starts.map((start) => `${start}/2020-08-01T00:00:00.000Z`));
  assert.deepEqual([rolling.dates, rolling.interval], [1, undefined]);
  assert.equal(scoresOn(starts).dates, 7);
});
