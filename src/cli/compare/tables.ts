/** The tables of a comparison for the terminal and the report, and all its figures as CSV. */
import type { TrainResults } from '../../training/index.js';
import type { PlaceComparison } from '../../utils/bootstrap.js';
import { questionRows } from '../output.js';
import {
  bytesText,
  cellLabels,
  comparedMeasures,
  computeSpread,
  digits,
  MEASURES_OF,
  measureValue,
  pooledMeasure,
  spreadText,
  trainedCells,
} from './measures.js';
import type { ComparedRun, Comparison } from './runs.js';
import {
  type Cost,
  cellSummaries,
  costRatios,
  type ModeVerdict,
  modeSummary,
  netBytes,
  verdicts,
} from './summary.js';
import type { Usage } from './usage.js';

export interface TextTable {
  /** A description in a sentence or two. */
  caption: string;
  titles: string[];
  rows: string[][];
}

const seconds = (value: number) => `${digits(value)} s`;
const cores = (value: number) => `${(100 * value).toFixed(0)} %`;

/** A row for each figure, a column for each mode, and columns with the ratios of the first mode to each other one. */
export function costTable(comparison: Comparison): TextTable {
  const [first, ...others] = comparison.modes;
  const all = comparison.modes.map((mode) => modeSummary(comparison, mode));
  const row = (title: string, cost: Cost, write: (value: number) => string) =>
    all.some(({ costs }) => costs[cost].count > 0)
      ? [
          [
            title,
            ...all.map(({ costs }) => spreadText(costs[cost], write)),
            ...others.map((other) => spreadText(costRatios(comparison, cost, first!, other))),
          ],
        ]
      : [];
  return {
    caption:
      'Medians over the seeds with the least and the most, and ratios of the runs with the same seeds.',
    titles: ['', ...comparison.modes, ...others.map((other) => `${first} / ${other}`)],
    rows: [
      ...row('time', 'seconds', seconds),
      ...row('CPU time, all nodes', 'cpuSeconds', seconds),
      ...row('CPU of a node, 100 % is a core', 'cores', cores),
      ...row('bytes sent, net', 'netBytes', bytesText),
      ...row('memory of a node, peak', 'peakMemoryBytes', bytesText),
    ],
  };
}

/** The accuracy of all cells together, as one set of patches and as a median over cells. */
export function accuracyTable(comparison: Comparison): TextTable {
  const { model, modes } = comparison;
  const all = modes.map((mode) => modeSummary(comparison, mode));
  const rows = MEASURES_OF[model]!.flatMap((measure) =>
    (['pooled', 'medians'] as const).flatMap((kind) => {
      const spreads = all.map((summary) => summary[kind][measure] ?? computeSpread([]));
      if (spreads.every(({ count }) => count === 0)) return [];
      const data = measure === 'MS-SSIM' ? 'all tiles' : 'all patches';
      const name = kind === 'pooled' ? `${measure}, ${data} as one set` : `${measure}, median of places`;
      return [[name, ...spreads.map((spread) => spreadText(spread))]];
    }),
  );
  return {
    caption: `On the validation patches, medians over the seeds with the least and the most${MEASURES_OF[model]!.includes('MS-SSIM') ? '; MS-SSIM on entire tiles, which include training ground' : ''}.`,
    titles: ['', ...modes],
    rows,
  };
}

/** A row for each pair of modes and each measure that has a verdict. */
export function verdictTable(comparison: Comparison): TextTable {
  return {
    caption: `Errors of two modes at the same places (medians over the seeds): geometric mean of their ratio over the places, with its 95 % interval by bootstrap over the places. A mode is better or worse only if the interval excludes 1${
      comparedMeasures(comparison.model).length > 1
        ? '. The error of PSNR is the mean squared error that it stands for, and that of SSIM is 1 - SSIM'
        : ''
    }.`,
    titles: ['compared', 'measure', 'ratio of errors', 'first is better at', 'verdict on the first'],
    rows: verdicts(comparison).map((one) => [
      `${one.mode} / ${one.than}`,
      one.measure,
      ratioText(one),
      placesText(one),
      one.verdict,
    ]),
  };
}

/** Returns text such as `1.3 (1.12 to 1.55)`; without the interval for few places, and `-` without places. */
export function ratioText({ ratio, interval }: PlaceComparison): string {
  if (ratio === undefined) return '-';
  return interval ? `${digits(ratio)} (${digits(interval[0])} to ${digits(interval[1])})` : digits(ratio);
}

export const placesText = ({ better, places }: PlaceComparison): string => `${better} of ${places} places`;

/** The questions that each mode is asked if places have a history. Without any, the table has no rows. */
export function questionTable({ modes, runs }: Comparison): TextTable {
  const first = modes.flatMap((mode) => runs.find((run) => run.mode === mode) ?? []);
  const byMode = first.flatMap(({ mode, results: { questions = [] } }) =>
    questions.length > 0 ? [{ mode, questions: questionRows(questions) }] : [],
  );
  return {
    caption: `Errors on other ground, on other dates and on both, of the first run of each mode, with 95 % intervals.`,
    titles: ['', ...(byMode[0]?.questions[0] ?? [])],
    rows: byMode.flatMap(({ mode, questions }) => questions.slice(1).map((row) => [mode, ...row])),
  };
}

/** A row for each cell, with the first measure of the model in a column for each mode. */
export function cellTable(comparison: Comparison): TextTable {
  const { model, modes } = comparison;
  const [measure] = MEASURES_OF[model]!;
  const rows = cellSummaries(comparison).map(({ cell, modes: scores }) => {
    const spreads = scores.map(({ measures }) => measures[measure] ?? computeSpread([]));
    return [cell, ...spreads.map((spread) => spreadText(spread))];
  });
  return {
    caption: `${measure} of each place on its validation patches, median with the least and the most over the seeds.`,
    titles: ['place', ...modes],
    rows,
  };
}

export function runTable({ runs, failed }: Comparison): TextTable {
  return {
    caption: 'Every run, in the order in which they ended.',
    titles: [
      'mode',
      'seed',
      'job',
      'time',
      'CPU time',
      'bytes sent, in all',
      'nodes',
      'places',
      'engine',
      'remarks',
    ],
    rows: [
      ...runs.map((run) => {
        const { mode, seed, job, seconds: time, usage, results } = run;
        return [
          mode,
          `${seed}`,
          job,
          seconds(time),
          seconds(usage.cpuSeconds),
          usage.sentBytes === undefined ? '-' : bytesText(usage.sentBytes),
          nodesText(usage, results),
          `${trainedCells(results).length}`,
          results.engine,
          runRemarks(run, runs[0]!),
        ];
      }),
      ...failed.map(({ mode, seed, code, message }) => [
        mode,
        `${seed}`,
        ...new Array<string>(7).fill('-'),
        `failed: ${message} [${code}]`,
      ]),
    ],
  };
}

/** The number of nodes; for a distributed model, also the number of nodes that trained. */
function nodesText({ nodes }: Usage, { models }: TrainResults): string {
  const members = models[0]?.distributed?.members.length;
  return members === undefined ? `${nodes.length}` : `${members} of ${nodes.length}`;
}

/** Reasons why the figures of a run may not be comparable with the figures of other runs. */
function runRemarks({ usage, disturbedBy }: ComparedRun, first: ComparedRun): string {
  const { incomplete } = usage;
  const idsOf = (one: Usage) => one.nodes.map(({ id }) => id).join(', ');
  return [
    idsOf(usage) !== idsOf(first.usage) && `other nodes than in the first run: ${idsOf(usage)}`,
    incomplete.length > 0 && `CPU and bytes are not complete: no answer from ${incomplete.join(', ')}`,
    disturbedBy === undefined && 'the server did not answer if other jobs ran at the same time',
    disturbedBy && disturbedBy.length > 0 && `other jobs ran at the same time: ${disturbedBy.join(', ')}`,
  ]
    .filter((remark) => typeof remark === 'string')
    .join('; ');
}

const CSV_TITLES = ['mode', 'seed', 'job', 'subject', 'measure', 'at', 'value', 'verdict'];

/**
 * Writes a comparison as CSV with one figure per row, for spreadsheets, pandas and R. Rows end with CR LF (RFC 4180). `subject` is all
 * nodes, a node by its id, the mean of nodes, all places, or a place. `at` is the epoch, the seconds since the first measurement of the
 * run, or empty. Verdicts have a pair of modes, such as `partitioned / regional`, and no seed.
 */
export function toCsv(comparison: Comparison): string {
  const name = cellLabels(comparison);
  const rows = [
    ...comparison.runs.flatMap((run) => csvRows(comparison, run, name)),
    ...verdicts(comparison).flatMap(verdictRows),
  ];
  return [CSV_TITLES, ...rows].map((row) => `${row.map(csvField).join(',')}\r\n`).join('');
}

const LOSS_MEASURES = { train: 'training loss', validation: 'validation loss', selection: 'selection loss' };

type Row = (string | number)[];

function csvRows(
  { model, idleBytesPerSecond }: Comparison,
  run: ComparedRun,
  nameOf: (key: string) => string,
): Row[] {
  const { mode, seed, job, seconds, usage, results } = run;
  const row = (subject: string, measure: string, value: number | undefined, at: number | '' = ''): Row[] =>
    value === undefined || !Number.isFinite(value)
      ? []
      : [[mode, seed, job, subject, measure, at, value, '']];
  const ifCounted = (value: number) => (usage.includesChildren ? value : undefined);
  return [
    ...row('all nodes', 'seconds', seconds),
    ...row('all nodes', 'cpu seconds', ifCounted(usage.cpuSeconds)),
    ...row('all nodes', 'bytes sent', usage.sentBytes),
    ...row('all nodes', 'net bytes sent', netBytes(run, idleBytesPerSecond)),
    ...usage.nodes.flatMap(({ id, cpuSeconds, sentBytes, peakMemoryBytes }) => [
      ...row(id, 'cpu seconds', ifCounted(cpuSeconds)),
      ...row(id, 'bytes sent', sentBytes),
      ...row(id, 'peak memory bytes', ifCounted(peakMemoryBytes)),
    ]),
    ...MEASURES_OF[model]!.flatMap((measure) => row('all places', measure, pooledMeasure(results, measure))),
    ...trainedCells(results).flatMap(({ key, metrics }) =>
      MEASURES_OF[model]!.flatMap((measure) => row(nameOf(key), measure, measureValue(measure, metrics))),
    ),
    ...results.models.flatMap(({ collection, geocode, losses = [] }) =>
      losses.flatMap(({ epoch, ...loss }) =>
        (['train', 'validation', 'selection'] as const).flatMap((kind) =>
          row(nameOf(`${collection} ${geocode}`), LOSS_MEASURES[kind], loss[kind], epoch),
        ),
      ),
    ),
    ...usage.trace.flatMap(({ seconds: at, cores, memoryBytes }) => [
      ...row('mean of nodes', 'cores', ifCounted(cores), Number(at.toFixed(2))),
      ...row('mean of nodes', 'memory bytes', ifCounted(memoryBytes), Number(at.toFixed(2))),
    ]),
  ];
}

function verdictRows({ mode, than, measure, verdict, ratio, interval, places, better }: ModeVerdict): Row[] {
  const [low, high] = interval ?? [];
  const figures = {
    'error ratio': ratio,
    'error ratio, low': low,
    'error ratio, high': high,
    places,
    'places where the first is better': better,
  };
  return Object.entries(figures).flatMap(([name, value]) =>
    value === undefined
      ? []
      : [[`${mode} / ${than}`, '', '', 'all places', `${measure} ${name}`, '', value, verdict]],
  );
}

function csvField(value: string | number): string {
  // Spreadsheets interpret a text with these first characters as a formula.
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
