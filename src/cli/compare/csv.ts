/** A comparison as one table with a figure in each row, for spreadsheets, pandas and R. */
import type { ComparedRun, Comparison } from './comparison.js';
import { MEASURES_OF, measureOf, scoresOf } from './measures.js';
import { netBytes } from './summary.js';

const TITLES = ['mode', 'seed', 'job', 'subject', 'measure', 'at', 'value'];

/**
 * Rows end with CR LF (RFC 4180). `subject` is what was measured: the run, all places, a place by its geocode, or a node by its id; `at` is
 * the epoch, or the seconds since the start of the job, or empty.
 */
export function csvOf(comparison: Comparison): string {
  const rows = comparison.runs.flatMap((run) => rowsOf(comparison, run));
  return [TITLES, ...rows].map((row) => `${row.map(field).join(',')}\r\n`).join('');
}

type Row = (string | number)[];

function rowsOf({ model, idleRate }: Comparison, run: ComparedRun): Row[] {
  const { mode, seed, job, seconds, usage, results } = run;
  const row = (subject: string, measure: string, value: number | undefined, at: number | '' = ''): Row[] =>
    value === undefined || !Number.isFinite(value) ? [] : [[mode, seed, job, subject, measure, at, value]];
  const { pooled } = results;
  return [
    ...row('run', 'seconds', seconds),
    ...row('run', 'cpu seconds', usage.cpuSeconds),
    ...row('run', 'bytes sent', usage.sentBytes),
    ...row('run', 'net bytes sent', netBytes(run, idleRate)),
    ...usage.nodes.flatMap(({ id, cpuSeconds, sentBytes, peakMemoryBytes }) => [
      ...row(id, 'cpu seconds', cpuSeconds),
      ...row(id, 'bytes sent', sentBytes),
      ...row(id, 'peak memory bytes', peakMemoryBytes),
    ]),
    ...MEASURES_OF[model]!.flatMap((measure) =>
      pooled
        ? row('all places', measure, measureOf(measure, { validation: pooled.model, tile: pooled.tile }))
        : [],
    ),
    ...[...scoresOf(results)].flatMap(([geocode, metrics]) =>
      MEASURES_OF[model]!.flatMap((measure) => row(geocode, measure, measureOf(measure, metrics))),
    ),
    ...results.models.flatMap(({ geocode, losses = [] }) =>
      losses.flatMap(({ epoch, train, validation, selection }) => [
        ...row(geocode, 'training loss', train, epoch),
        ...row(geocode, 'validation loss', validation, epoch),
        ...row(geocode, 'selection loss', selection, epoch),
      ]),
    ),
    ...usage.trace.flatMap(({ seconds: at, cores, memoryBytes }) => [
      ...row('mean of nodes', 'cores', cores, Number(at.toFixed(2))),
      ...row('mean of nodes', 'memory bytes', memoryBytes, Number(at.toFixed(2))),
    ]),
  ];
}

function field(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
