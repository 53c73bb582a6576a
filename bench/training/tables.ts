/** The tables of the paper from the runs, as Markdown and as results. */

import {
  bytesText,
  computeSpread,
  digits,
  MEASURES_OF,
  type Measure,
  spreadText,
} from '../../src/cli/compare/measures.js';
import type { ComparedRun, Comparison } from '../../src/cli/compare/runs.js';
import {
  cellSummaries,
  costRatios,
  modeSummary,
  netBytes,
  runsOfMode,
  verdicts,
} from '../../src/cli/compare/summary.js';
import type { Usage } from '../../src/cli/compare/usage.js';
import type { TrainingMode } from '../../src/training/index.js';
import { type BenchResult, result, verdictCells } from '../support/bench.js';
import { markdown } from './markdown.js';

export const MODES: TrainingMode[] = ['distributed', 'partitioned', 'contained'];

export interface LineRuns {
  /** Description of the line. */
  line: string;
  /** The usage of idle nodes. */
  idle: Usage;
  /** One for each model, in all modes. */
  comparisons: Comparison[];
}

/** Maximum bytes of control messages in the training of a model. */
const CONTROL_MARK = 20_000;
const RATIO_MARK = 1.05;

/** Bytes beyond those of idle nodes. */
const net = (run: ComparedRun, { idleBytesPerSecond }: Comparison) => netBytes(run, idleBytesPerSecond)!;
const distributedOf = ({ results }: ComparedRun) => results.models[0]!.distributed!;

/** Sent by each node beyond what it sends anyway, over the least that an all-reduce takes. */
function ratios(run: ComparedRun, idle: Usage): number[] {
  const { leastBytes } = distributedOf(run);
  return run.usage.nodes.map(
    ({ sentBytes }, i) =>
      (sentBytes! - (idle.nodes[i]!.sentBytes! / idle.seconds) * run.usage.seconds) / leastBytes,
  );
}

/** A row for each line and model. */
const rowsOf = (lines: LineRuns[], row: (comparison: Comparison, line: LineRuns) => string[][]) =>
  lines.flatMap((one) => one.comparisons.flatMap((comparison) => row(comparison, one)));

export function timeTable(lines: LineRuns[]): string[] {
  const rows = rowsOf(lines, (comparison, { line }) => {
    const times = MODES.map((mode) => spreadText(modeSummary(comparison, mode).costs.seconds));
    const ratios = costRatios(comparison, 'seconds', 'distributed', 'partitioned');
    return [[comparison.model, line, ...times, spreadText(ratios)]];
  });
  return markdown(['training time, s', 'line', ...MODES, 'distributed over partitioned'], rows);
}

export function trafficTable(lines: LineRuns[]): string[] {
  const rows = rowsOf(lines, (comparison, { line }) =>
    MODES.map((mode) => {
      const of = (figure: (run: ComparedRun) => number) =>
        spreadText(computeSpread(runsOfMode(comparison, mode).map(figure)), bytesText);
      return [
        ...[comparison.model, line, mode, of(({ usage }) => usage.sentBytes!)],
        of((run) => net(run, comparison)),
        of((run) => net(run, comparison) / run.usage.seconds),
        of((run) => net(run, comparison) / run.results.models.length),
      ];
    }),
  );
  return markdown(['bytes', 'line', 'mode', 'in all', 'net', 'net a second', 'net a model'], rows);
}

export function ratioTable(lines: LineRuns[]): string[] {
  const rows = rowsOf(lines, (comparison, { line, idle }) => {
    const runs = runsOfMode(comparison, 'distributed');
    const { steps, parameters, leastBytes } = distributedOf(runs[0]!);
    const counted = computeSpread(runs.flatMap((run) => ratios(run, idle)));
    const rings = computeSpread(
      runs.flatMap((run) => distributedOf(run).members.map(({ ratio }) => ratio ?? 0)),
    );
    const figures = [`${steps}`, `${parameters}`, bytesText(leastBytes)];
    return [[comparison.model, line, ...figures, spreadText(rings, fixed), spreadText(counted, fixed)]];
  });
  return markdown(
    ['distributed', 'line', 'steps', 'weights', 'least of a node', 'ring over it', 'interface, net, over it'],
    rows,
  );
}

export function cpuTable(lines: LineRuns[]): string[] {
  const rows = rowsOf(lines, (comparison, { line }) =>
    MODES.map((mode) => {
      const { cpuSeconds, cores } = modeSummary(comparison, mode).costs;
      return [
        ...[comparison.model, line, mode, spreadText(cpuSeconds)],
        spreadText(cores, (value) => digits(100 * value)),
      ];
    }),
  );
  return markdown(['CPU', 'line', 'mode', 's, all nodes', '% of a core, mean of the nodes'], rows);
}

/** The partitioned models beside the one for all places. Undefined for measures without a verdict. */
const verdictOn = (comparison: Comparison, measure: Measure) =>
  verdicts(comparison).find(
    (one) => one.mode === 'distributed' && one.than === 'partitioned' && one.measure === measure,
  );

/** Medians of places. */
export function accuracyTable({ comparisons }: LineRuns): string[] {
  const rows = comparisons.flatMap((comparison) =>
    MEASURES_OF[comparison.model]!.flatMap((measure) => {
      const scores = (['distributed', 'partitioned'] as const).map(
        (mode) => modeSummary(comparison, mode).medians[measure],
      );
      const verdict = verdictOn(comparison, measure);
      const said = verdict ? verdictCells(verdict) : ['-', '-', '-'];
      return scores.every((score) => score)
        ? [[comparison.model, measure, ...scores.map((score) => spreadText(score!)), ...said]]
        : [];
    }),
  );
  const titles = ['distributed', 'partitioned', 'error of distributed over partitioned', 'better at'];
  return markdown(['model', 'measure', ...titles, 'verdict on distributed'], rows);
}

/** Medians of the seeds. */
export function placeTable({ comparisons }: LineRuns, regionOf: Map<string, string>): string[] {
  const pair = ['distributed', 'partitioned'] as const;
  const cells = comparisons.map((comparison) => {
    const [measure] = MEASURES_OF[comparison.model]!;
    const places = new Map(cellSummaries(comparison).map(({ cell, modes }) => [cell, modes]));
    return {
      titles: pair.map((mode) => `${comparison.model} ${measure}, ${mode}`),
      of: (geocode: string) =>
        pair.map((name) => {
          const spread = places.get(geocode)?.find(({ mode }) => mode === name)?.measures[measure];
          return spread ? digits(spread.median) : '-';
        }),
    };
  });
  const rows = [...regionOf].map(([geocode, region]) => [region, ...cells.flatMap(({ of }) => of(geocode))]);
  return markdown(['region', ...cells.flatMap(({ titles }) => titles)], rows);
}

export function results(lines: LineRuns[]): BenchResult[] {
  return lines.flatMap(({ line, idle, comparisons }) =>
    comparisons.flatMap((comparison) => {
      const title = `${comparison.model}, ${line}`;
      const [measure] = MEASURES_OF[comparison.model]!;
      const time = (mode: TrainingMode) => modeSummary(comparison, mode).costs.seconds.median;
      const each = (mode: TrainingMode) =>
        computeSpread(
          runsOfMode(comparison, mode).map((run) => net(run, comparison) / run.results.models.length),
        ).median;
      const { worse, places } = verdictOn(comparison, measure)!;
      return [
        result(`${title}: training time, partitioned`, 's', time('partitioned'), {
          distributed: time('distributed'),
          contained: time('contained'),
        }),
        result(`${title}: net bytes a model, partitioned`, 'bytes', each('partitioned'), {
          mark: CONTROL_MARK,
          contained: each('contained'),
          distributed: each('distributed'),
        }),
        result(
          `${title}: net bytes of a node over the least of an all-reduce, the most`,
          'x',
          Math.max(...runsOfMode(comparison, 'distributed').flatMap((run) => ratios(run, idle))),
          { mark: RATIO_MARK },
        ),
        result(`${title}: places where partitioned has the better ${measure}`, `of ${places}`, worse),
      ];
    }),
  );
}

const fixed = (value: number) => value.toFixed(3);
