/** A comparison as one table with a figure in each row, for spreadsheets, pandas and R. */
import type { ComparedRun, Comparison } from './comparison.js';
import { MEASURES_OF, measureOf, trainedPlaces } from './measures.js';
import { netBytes } from './summary.js';

const TITLES = ['mode', 'seed', 'job', 'subject', 'measure', 'at', 'value'];

/**
 * Rows end with CR LF (RFC 4180). `subject` is what was measured: all nodes, a node by its id, all places, or a place; `at` is the epoch, or
 * the seconds since the start of the job, or empty.
 */
export function csvOf(comparison: Comparison): string {
  const rows = comparison.runs.flatMap((run) => rowsOf(comparison, run));
  return [TITLES, ...rows].map((row) => `${row.map(field).join(',')}\r\n`).join('');
}

type Row = (string | number)[];

function rowsOf({ model, idleBytesPerSecond }: Comparison, run: ComparedRun): Row[] {
  const { mode, seed, job, seconds, usage, results } = run;
  const row = (subject: string, measure: string, value: number | undefined, at: number | '' = ''): Row[] =>
    value === undefined || !Number.isFinite(value) ? [] : [[mode, seed, job, subject, measure, at, value]];
  const { pooled } = results;
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
    ...MEASURES_OF[model]!.flatMap((measure) =>
      pooled
        ? row('all places', measure, measureOf(measure, { validation: pooled.model, tile: pooled.tile }))
        : [],
    ),
    ...trainedPlaces(results).flatMap(({ name, metrics }) =>
      MEASURES_OF[model]!.flatMap((measure) => row(name, measure, measureOf(measure, metrics))),
    ),
    ...results.models.flatMap(({ geocode, losses = [] }) =>
      losses.flatMap(({ epoch, train, validation, selection }) => [
        ...row(geocode, 'training loss', train, epoch),
        ...row(geocode, 'validation loss', validation, epoch),
        ...row(geocode, 'selection loss', selection, epoch),
      ]),
    ),
    ...usage.trace.flatMap(({ seconds: at, cores, memoryBytes }) => [
      ...row('mean of nodes', 'cores', ifCounted(cores), Number(at.toFixed(2))),
      ...row('mean of nodes', 'memory bytes', ifCounted(memoryBytes), Number(at.toFixed(2))),
    ]),
  ];
}

function field(value: string | number): string {
  // A spreadsheet takes a text that begins like this for a formula.
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
