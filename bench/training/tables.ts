/** The tables of the paper out of the runs, as Markdown and as results. */
import type { TrainingMode } from '../../src/training/inputs.js';
import { type BenchResult, median, result } from '../bench.js';
import { MEASURES, MEASURES_OF, type Measure, meanOf, scoresOf, wins } from './accuracy.js';
import { markdown } from './markdown.js';
import type { Run } from './run.js';
import { digits, spreadOf, told, verdict } from './spread.js';
import type { Traffic } from './traffic.js';

export const MODES: TrainingMode[] = ['distributed', 'partitioned', 'contained'];

export interface LineRuns {
  /** What the line is. */
  line: string;
  /** What the nodes send while nothing is trained. */
  idle: Traffic;
  runs: Run[];
}

/** Bytes of control that the training of a model may take. */
const CONTROL_MARK = 20_000;
const RATIO_MARK = 1.05;

const of = (runs: Run[], model: string, mode: TrainingMode) =>
  runs.filter(({ asked }) => asked.model === model && asked.mode === mode);
const modelsOf = ({ runs }: LineRuns) => [...new Set(runs.map(({ asked }) => asked.model))];
const seconds = (runs: Run[]) => spreadOf(runs.map((run) => run.seconds));

/** What a run has sent beyond what would have been sent anyway. */
const net = ({ traffic }: Run, idle: Traffic) =>
  traffic.total - (idle.total / idle.seconds) * traffic.seconds;

/** Sent by each node beyond what it sends anyway, over the least that an all-reduce takes. */
function ratios({ traffic, results }: Run, idle: Traffic): number[] {
  const { leastBytes } = results.models[0]!.distributed!;
  return traffic.sent.map(
    (sent, i) => (sent - (idle.sent[i]! / idle.seconds) * traffic.seconds) / leastBytes,
  );
}

export function timeTable(lines: LineRuns[]): string[] {
  const rows = lines.flatMap((one) =>
    modelsOf(one).map((model) => {
      const times = MODES.map((mode) => seconds(of(one.runs, model, mode)));
      const [distributed, partitioned] = times as [(typeof times)[0], (typeof times)[0]];
      const factor = (distributed.median / partitioned.median).toFixed(2);
      return [
        ...[model, one.line, ...times.map((time) => told(time))],
        `${factor} x; partitioned: ${verdict(partitioned, distributed)}`,
      ];
    }),
  );
  return markdown(['training time, s', 'line', ...MODES, 'distributed over partitioned'], rows);
}

export function trafficTable(lines: LineRuns[]): string[] {
  const rows = lines.flatMap(({ line, idle, runs }) =>
    modelsOf({ line, idle, runs }).flatMap((model) =>
      MODES.map((mode) => {
        const these = of(runs, model, mode);
        const all = spreadOf(these.map((run) => run.traffic.total));
        const beyond = spreadOf(these.map((run) => net(run, idle)));
        const rate = spreadOf(these.map((run) => net(run, idle) / run.traffic.seconds));
        const each = spreadOf(these.map((run) => net(run, idle) / run.results.models.length));
        return [model, line, mode, ...[all, beyond, rate, each].map((spread) => told(spread, bytes))];
      }),
    ),
  );
  return markdown(['bytes', 'line', 'mode', 'in all', 'net', 'net a second', 'net a model'], rows);
}

export function ratioTable(lines: LineRuns[]): string[] {
  const rows = lines.flatMap((one) =>
    modelsOf(one).map((model) => {
      const runs = of(one.runs, model, 'distributed');
      const { distributed } = runs[0]!.results.models[0]!;
      const { steps, parameters, leastBytes } = distributed!;
      const counted = spreadOf(runs.flatMap((run) => ratios(run, one.idle)));
      const rings = spreadOf(
        runs.flatMap((run) => run.results.models[0]!.distributed!.members.map(({ ratio }) => ratio ?? 0)),
      );
      const figures = [`${steps}`, `${parameters}`, bytes(leastBytes)];
      return [model, one.line, ...figures, told(rings, fixed), told(counted, fixed)];
    }),
  );
  return markdown(
    ['distributed', 'line', 'steps', 'weights', 'least of a node', 'ring over it', 'interface, net, over it'],
    rows,
  );
}

export function cpuTable(lines: LineRuns[]): string[] {
  const rows = lines.flatMap((one) =>
    modelsOf(one).flatMap((model) =>
      MODES.map((mode) => {
        const runs = of(one.runs, model, mode);
        const use = spreadOf(
          runs.map(({ cpu, traffic }) => (100 * cpu) / traffic.seconds / traffic.sent.length),
        );
        return [model, one.line, mode, told(spreadOf(runs.map(({ cpu }) => cpu))), told(use)];
      }),
    ),
  );
  return markdown(['CPU', 'line', 'mode', 's, all nodes', '% of a core, mean of the nodes'], rows);
}

export function accuracyTable({ runs }: LineRuns): string[] {
  const pairs = pairsOf(runs);
  const rows = [...new Set(pairs.map(({ model }) => model))].flatMap((model) =>
    MEASURES_OF[model]!.map((measure) => {
      const these = pairs.filter((pair) => pair.model === model);
      const [own, other] = (['partitioned', 'distributed'] as const).map((mode) =>
        spreadOf(these.map((pair) => meanOf(pair[mode], measure))),
      ) as [ReturnType<typeof spreadOf>, ReturnType<typeof spreadOf>];
      const { won, all } = rate(these, measure);
      const said = verdict(own, other);
      const isBetter = (said === 'less') === MEASURES[measure].isError;
      const verdictText = said === 'less' || said === 'more' ? (isBetter ? 'better' : 'worse') : said;
      return [model, measure, told(other), told(own), `${won} of ${all}`, verdictText];
    }),
  );
  return markdown(['model', 'measure', 'distributed', 'partitioned', 'tiles won', 'partitioned is'], rows);
}

/** Scores of places of a run of each mode with the same seed. */
function pairsOf(runs: Run[]) {
  return runs
    .filter(({ asked }) => asked.mode === 'partitioned')
    .map(({ asked: { model, seed }, results }) => {
      const other = of(runs, model, 'distributed').find(({ asked }) => asked.seed === seed)!;
      return { model, partitioned: scoresOf(results), distributed: scoresOf(other.results) };
    });
}

function rate(pairs: ReturnType<typeof pairsOf>, measure: Measure): { won: number; all: number } {
  const counts = pairs.map((pair) => wins(pair.partitioned, pair.distributed, measure));
  return {
    won: counts.reduce((sum, { won }) => sum + won, 0),
    all: counts.reduce((sum, { of }) => sum + of, 0),
  };
}

export function placeTable({ runs }: LineRuns, regionOf: Map<string, string>): string[] {
  const pairs = pairsOf(runs);
  const models = [...new Set(pairs.map(({ model }) => model))];
  const rows = [...regionOf].map(([geocode, region]) => [
    region,
    ...models.flatMap((model) => {
      const measure = MEASURES_OF[model]![0]!;
      return (['distributed', 'partitioned'] as const).map((mode) => {
        const values = pairs
          .filter((pair) => pair.model === model)
          .flatMap((pair) => {
            const metrics = pair[mode].get(geocode);
            return (metrics && MEASURES[measure].of(metrics)) ?? [];
          });
        return values.length > 0 ? digits(median(values)) : '-';
      });
    }),
  ]);
  const titles = models.flatMap((model) =>
    ['distributed', 'partitioned'].map((mode) => `${model} ${MEASURES_OF[model]![0]}, ${mode}`),
  );
  return markdown(['region', ...titles], rows);
}

export function results(lines: LineRuns[]): BenchResult[] {
  return lines.flatMap((one) =>
    modelsOf(one).flatMap((model) => {
      const title = `${model}, ${one.line}`;
      const runs = Object.fromEntries(MODES.map((mode) => [mode, of(one.runs, model, mode)])) as Record<
        TrainingMode,
        Run[]
      >;
      const each = (mode: TrainingMode) =>
        median(runs[mode].map((run) => net(run, one.idle) / run.results.models.length));
      const measure = MEASURES_OF[model]![0]!;
      const { won, all } = rate(
        pairsOf(of(one.runs, model, 'partitioned').concat(runs.distributed)),
        measure,
      );
      return [
        result(`${title}: training time, partitioned`, 's', seconds(runs.partitioned).median, {
          distributed: seconds(runs.distributed).median,
          contained: seconds(runs.contained).median,
        }),
        result(`${title}: net bytes a model, partitioned`, 'bytes', each('partitioned'), {
          mark: CONTROL_MARK,
          contained: each('contained'),
          distributed: each('distributed'),
        }),
        result(
          `${title}: net bytes of a node over the least of an all-reduce, the most`,
          'x',
          Math.max(...runs.distributed.flatMap((run) => ratios(run, one.idle))),
          { mark: RATIO_MARK },
        ),
        result(`${title}: tiles where partitioned has the better ${measure}`, `of ${all}`, won),
      ];
    }),
  );
}

const fixed = (value: number) => value.toFixed(3);

/** Of either sign, in the unit that fits. */
function bytes(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e6) return `${digits(value / 1e6)} MB`;
  return size >= 1e3 ? `${digits(value / 1e3)} kB` : `${value.toFixed(0)} B`;
}
