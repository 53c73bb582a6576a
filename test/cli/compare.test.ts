/** `tilewright compare`: trains in several modes, stores nothing, and writes a report of what it measured. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SERIES_DATES, writeSentinelLikeSeries } from '../../data-samples/index.js';
import type { Comparison } from '../../src/cli/compare/runs.js';
import type { TrainResults } from '../../src/training/index.js';
import { assertWellFormed } from '../demo-report/markup.js';
import { finished, start, tilewright } from '../support/command.js';
import { eventually } from '../support/eventually.js';
import { onlyNightly } from '../support/nightly.js';
import { ingest, testNode } from '../support/node.js';
import { tempFolder } from '../support/temp.js';

interface PrintedVerdict {
  mode: string;
  than: string;
  measure: string;
  ratio: number;
  interval?: [number, number];
  places: number;
  better: number;
  verdict: string;
}

const FILTER = ['--max-cloud', '30', '--min-coverage', '60'];
/** A second process would load a second engine. */
const CORES = ['--cores', '1'];

test('comparing modes', { timeout: 500_000 }, async (t) => {
  const folder = await tempFolder(t);
  const data = ['--data', join(folder, 'data')];
  const node = await testNode(t, join(folder, 'data'), { cores: 1 });
  const options = { size: { width: 800, height: 700 }, dates: SERIES_DATES.slice(2, 3) };
  for (const { path } of await writeSentinelLikeSeries(join(folder, 'scenes'), options))
    await ingest(node, { href: path, collection: 's', scale: 0.0001, maskBand: 5 });
  await node.close();

  await t.test('modes are compared by what they train, and no model is stored', async () => {
    const out = join(folder, 'report-a');
    const modes = ['partitioned', 'distributed', 'contained'];
    const asked = [
      'ndvi',
      '--modes',
      modes.join(','),
      '--seeds',
      '3,1',
      '--epochs',
      '2',
      ...FILTER,
      ...CORES,
    ];
    const done = await tilewright('compare', ...asked, ...data, '--out', out, '--format', 'json');
    assert.equal(done.code, 0, done.stderr);
    const comparison = JSON.parse(done.stdout) as Comparison & { verdicts: PrintedVerdict[] };
    assert.deepEqual(
      comparison.runs.map(({ mode, seed }) => `${mode} ${seed}`),
      [...modes.map((mode) => `${mode} 3`), ...modes.toReversed().map((mode) => `${mode} 1`)],
    );
    for (const { seconds, usage } of comparison.runs) {
      assert.ok(seconds > 0 && usage.seconds >= seconds - 0.1, `${usage.seconds} of ${seconds} s`);
      assert.ok(usage.cpuSeconds > 0.1 && usage.nodes[0]!.peakMemoryBytes > 5e7, JSON.stringify(usage.nodes));
      // The node runs in the command, and sends nothing.
      assert.equal(usage.sentBytes, undefined);
    }

    const { stdout } = await tilewright('models', ...data, '--format', 'json');
    assert.deepEqual(JSON.parse(stdout).models, []);
    const trained = await tilewright(
      'train',
      'ndvi',
      '--mode',
      'partitioned',
      '--seed',
      '1',
      '--epochs',
      '2',
      ...FILTER,
      ...CORES,
      ...data,
      '--format',
      'json',
    );
    const { models } = JSON.parse(trained.stdout) as TrainResults;
    const scores = (results: Pick<TrainResults, 'models'>) =>
      results.models.map(({ geocode, metrics }) => ({ geocode, metrics }));
    const compared = (mode: string) =>
      comparison.runs.find((run) => run.mode === mode && run.seed === 1)!.results;
    assert.deepEqual(scores(compared('partitioned')), scores({ models }));
    assert.deepEqual(scores(compared('contained')), scores({ models }));
    for (const { losses, patches } of comparison.runs.flatMap(({ results }) => results.models)) {
      assert.deepEqual(
        losses!.map(({ epoch }) => epoch),
        [1, 2],
      );
      assert.ok(patches!.validation > 0);
    }

    const [titles, ...rows] = readFileSync(join(out, 'compare-ndvi.csv'), 'utf8')
      .trimEnd()
      .split('\r\n')
      .map((line) => line.split(','));
    assert.deepEqual(titles, ['mode', 'seed', 'job', 'subject', 'measure', 'at', 'value', 'verdict']);
    const figure = (...key: string[]) => {
      // Without the job.
      const found = rows.find((row) => row.toSpliced(2, 1).join().startsWith(key.join()));
      return Number(found!.at(-2));
    };
    for (const { geocode, metrics } of models) {
      assert.equal(figure('partitioned', '1', geocode, 'MSE'), metrics.validation.mse);
      assert.equal(figure('partitioned', '1', geocode, 'validation loss', '2') > 0, true);
    }
    assert.equal(
      figure('distributed', '3', 'all places', 'MSE'),
      comparison.runs[1]!.results.pooled!.model.mse,
    );

    // Both seeds, so the median of a place is the mean of its two errors.
    const error = (mode: string, geocode: string) =>
      (figure(mode, '1', geocode, 'MSE') + figure(mode, '3', geocode, 'MSE')) / 2;
    assert.deepEqual(
      comparison.verdicts.map(({ mode, than, measure }) => `${mode} / ${than}, ${measure}`),
      ['partitioned / distributed, MSE', 'partitioned / contained, MSE', 'distributed / contained, MSE'],
    );
    for (const { mode, than, ratio, places, better, interval, verdict } of comparison.verdicts) {
      const ratios = models.map(({ geocode }) => error(mode, geocode) / error(than, geocode));
      const mean = Math.exp(ratios.reduce((sum, one) => sum + Math.log(one), 0) / ratios.length);
      assert.ok(Math.abs(ratio / mean - 1) < 1e-9, `${ratio} is not ${mean}`);
      assert.deepEqual([places, better], [models.length, ratios.filter((one) => one < 1).length]);
      const few = mode === 'partitioned' && than === 'contained' ? 'the same' : 'too few places';
      assert.deepEqual([interval, verdict], [undefined, few]);
      const row = rows.find(
        ([pair, , , , measure]) => pair === `${mode} / ${than}` && measure === 'MSE error ratio',
      );
      assert.deepEqual(row!.slice(-2), [`${ratio}`, verdict]);
    }

    const page = readFileSync(join(out, 'compare-ndvi.html'), 'utf8');
    assertWellFormed(page);
    assert.match(page, /<th scope="row">partitioned \/ contained<\/th><td>MSE<\/td>.*<td>the same<\/td>/);
    assert.doesNotMatch(page, /NaN|undefined|Infinity|https?:\/\//);
    assert.match(page, /tilewright compare ndvi --modes partitioned,distributed,contained --seeds 3,1/);
    for (const { geocode } of models) assert.ok(page.includes(`<th scope="row">${geocode}</th>`), geocode);
  });

  await t.test(
    'a training that fails is reported, and the others are compared',
    { skip: onlyNightly },
    async () => {
      const out = join(folder, 'report-b');
      const compare = (...flags: string[]) =>
        tilewright(
          'compare',
          'ndvi',
          '--epochs',
          '1',
          '--seeds',
          '1',
          ...FILTER,
          ...CORES,
          ...data,
          '--out',
          out,
          ...flags,
        );
      const starved = await compare('--modes', 'partitioned,contained', '--place-memory', '1MB');
      assert.equal(starved.code, 3, starved.stderr);
      assert.match(starved.stdout, /^partitioned \/ contained +MSE +- +0 of 0 places +too few places$/m);
      assert.match(starved.stderr, /^2 of 2: contained, seed 1: failed: .*\[TW_TRAIN_NOTHING\]$/m);
      const page = readFileSync(join(out, 'compare-ndvi.html'), 'utf8');
      assertWellFormed(page);
      assert.match(page, /1 of 2 trainings, seed 1, 1 failed/);
      assert.doesNotMatch(page, /NaN|undefined/);

      const nothing = await compare('--datetime', '1999');
      assert.equal(nothing.code, 1);
      assert.match(nothing.stderr, /no tile matches the filter.*\[TW_TRAIN_NOTHING\]/);
      for (const [flags, said] of [
        [['--modes', 'fast'], /"fast" is not one of partitioned, distributed, contained/],
        [['--modes', 'partitioned,partitioned'], /Name each one once/],
        [['--seeds', '1,x'], /must be a number/],
        [['--seeds', '1,01'], /Name each one once/],
        [['--seeds', '1,-5'], /Seeds go from 0 to 4294967295/],
        [['--modes', 'contained', '--place-memory', '900kB'], /must be 1MB or more/],
        [['--place-memory', '1GB'], /--place-memory goes with contained/],
      ] as const) {
        const wrong = await compare(...flags);
        assert.equal(wrong.code, 2, wrong.stderr);
        assert.match(wrong.stderr, said);
      }
    },
  );

  await t.test('what has ended is in the report when the command is stopped', async () => {
    const out = join(folder, 'report-c');
    const child = start(['compare', 'ndvi', '--epochs', '3', ...FILTER, ...CORES, ...data, '--out', out]);
    const ended = finished(child);
    const report = join(out, 'compare-ndvi.html');
    await eventually('a training has ended', () => existsSync(report), 120_000);
    child.kill('SIGINT');
    const { signal, stderr } = await ended;
    assert.equal(signal, 'SIGINT', stderr);
    assert.match(
      stderr,
      /stopped: [1-5] of 6 runs had ended and are in .*compare-ndvi.html \[TW_CLI_COMPARE_STOPPED\]/,
    );
    assert.match(readFileSync(report, 'utf8'), /[1-5] of 6 trainings/);
  });

  await t.test('a comparison on a server waits for other jobs', { skip: onlyNightly }, async (t) => {
    const server = await testNode(t, join(folder, 'data'), { cores: 1 });
    const url = await server.listen('127.0.0.1', 0);
    const filter = { maxCloud: 30, minCoverage: 60 };
    const inputs = { model: 'ndvi', epochs: 20, store: false, filter };
    const headers = { authorization: `Bearer ${server.ownerSecret}` };
    const started = await server.server.inject({
      ...{ method: 'POST', url: '/processes/train/execution', headers, payload: { inputs } },
    });
    const asked = ['ndvi', '--modes', 'partitioned', '--seeds', '1', '--epochs', '1', ...FILTER];
    const out = join(folder, 'report-d');
    const done = await tilewright('compare', ...asked, '--server', url, '--out', out, '--format', 'json');
    assert.equal(done.code, 0, done.stderr);
    const [run] = (JSON.parse(done.stdout) as Comparison).runs;
    assert.deepEqual(run!.disturbedBy, []);
    const { jobs } = (await server.server.inject({ url: '/jobs', headers })).json();
    type Job = { jobID: string; created: string; started: string; finished: string };
    const other = jobs.find(({ jobID }: Job) => jobID === started.json().jobID) as Job;
    const own = (jobs as Job[]).filter(({ created }) => created > other.created);
    // The warm-up and the run.
    assert.equal(own.length, 2);
    for (const job of own) assert.ok(job.created >= other.finished, JSON.stringify([job, other]));
    await server.close();
  });
});
