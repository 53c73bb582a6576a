/** The tables of a comparison, for the terminal and for the report. */
import type { TrainingMode, TrainResults } from '../../training/index.js';
import type { ComparedRun, Comparison } from './compare-data.js';
import { MEASURES, MEASURES_OF, type Measure, trainedCells } from './compare-measures.js';
import {
  bytesText,
  compareSpreads,
  computeSpread,
  digits,
  type Spread,
  spreadText,
} from './compare-spread.js';
import { cellSummaries, countWins, type ModeSummary, modeSummary } from './compare-summary.js';
import type { Usage } from './compare-usage.js';

export interface TextTable {
  /** A description in a sentence or two. */
  caption: string;
  titles: string[];
  rows: string[][];
}

const seconds = (value: number) => `${digits(value)} s`;
const cores = (value: number) => `${(100 * value).toFixed(0)} %`;

/** A row for each figure, a column for each mode, and a column that compares the first mode with each other one. */
export function costTable(comparison: Comparison): TextTable {
  const all = comparison.modes.map((mode) => modeSummary(comparison, mode));
  const row = (title: string, of: (summary: ModeSummary) => Spread, write: (value: number) => string) =>
    all.some((summary) => of(summary).count > 0)
      ? [[title, ...all.map((one) => spreadText(of(one), write)), ...besideFirst(all.map(of), ratioText)]]
      : [];
  return {
    caption:
      'Medians over the seeds with the least and the most. A figure is called less or more only if these ranges do not touch and there are three runs or more. With three runs each, chance alone separates one pair of ranges in ten.',
    titles: ['', ...comparison.modes, ...besideTitles(comparison.modes)],
    rows: [
      ...row('time', ({ seconds: of }) => of, seconds),
      ...row('CPU time, all nodes', ({ cpuSeconds }) => cpuSeconds, seconds),
      ...row('CPU of a node, 100 % is a core', ({ cores: of }) => of, cores),
      ...row('bytes sent, net', ({ netBytes }) => netBytes, bytesText),
      ...row('memory of a node, peak', ({ peakMemoryBytes }) => peakMemoryBytes, bytesText),
    ],
  };
}

/** The accuracy of all cells together, as one set of patches and as a mean over cells. */
export function accuracyTable(comparison: Comparison): TextTable {
  const { model, modes } = comparison;
  const all = modes.map((mode) => modeSummary(comparison, mode));
  const rows = MEASURES_OF[model]!.flatMap((measure) =>
    (['pooled', 'means'] as const).flatMap((kind) => {
      const spreads = all.map((summary) => summary[kind][measure] ?? computeSpread([]));
      if (spreads.every(({ count }) => count === 0)) return [];
      const data = measure === 'MS-SSIM' ? 'all tiles' : 'all patches';
      const name = kind === 'pooled' ? `${measure}, ${data} as one set` : `${measure}, mean of places`;
      return [
        [
          name,
          ...spreads.map((spread) => spreadText(spread)),
          ...besideFirst(spreads, (first, other) => betterText(measure, first, other)),
        ],
      ];
    }),
  );
  return {
    caption: `On the validation patches${MEASURES_OF[model]!.includes('MS-SSIM') ? '; MS-SSIM on entire tiles, which include training ground' : ''}.`,
    titles: ['', ...modes, ...besideTitles(modes)],
    rows: [...rows, ...winRows(comparison)],
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

function winRows(comparison: Comparison): string[][] {
  const { model, modes } = comparison;
  const [measure] = MEASURES_OF[model]!;
  const [first, ...others] = modes as [TrainingMode, ...TrainingMode[]];
  if (others.length === 0) return [];
  const texts = others.map((other) => {
    const { won, of } = countWins(comparison, first, other, measure);
    return of > 0 ? `${won} of ${of}` : '-';
  });
  return [
    [`places, over the seeds, where ${first} has the better ${measure}`, ...modes.map(() => ''), ...texts],
  ];
}

const besideTitles = ([first, ...others]: TrainingMode[]) => others.map((other) => `${first} / ${other}`);

function besideFirst([first, ...others]: Spread[], say: (first: Spread, other: Spread) => string): string[] {
  return others.map((other) => (first!.count > 0 && other.count > 0 ? say(first!, other) : '-'));
}

/** Omits the ratio unless both medians are positive, because net bytes can be 0 or negative. */
function ratioText(first: Spread, other: Spread): string {
  const isRatio = first.median > 0 && other.median > 0;
  return `${isRatio ? `${digits(first.median / other.median)}, ` : ''}${compareSpreads(first, other)}`;
}

export function betterText(measure: Measure, first: Spread, other: Spread): string {
  const isSame = first.median === other.median && first.least === other.least && first.most === other.most;
  if (isSame) return 'the same';
  const said = compareSpreads(first, other);
  if (said !== 'less' && said !== 'more') return said;
  return (said === 'less') === MEASURES[measure].isError ? 'better' : 'worse';
}
