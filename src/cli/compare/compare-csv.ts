/** Writes a comparison as CSV with one figure per row, for spreadsheets, pandas and R. */
import { cellLabels } from './compare-cells.js';
import type { ComparedRun, Comparison } from './compare-data.js';
import { MEASURES_OF, measureValue, pooledMeasure, trainedCells } from './compare-measures.js';
import { netBytes } from './compare-summary.js';

const TITLES = ['mode', 'seed', 'job', 'subject', 'measure', 'at', 'value'];

/**
 * Rows end with CR LF (RFC 4180). `subject` is all nodes, a node by its id, the mean of nodes, all places, or a place. `at` is the epoch,
 * the seconds since the first measurement of the run, or empty.
 */
export function toCsv(comparison: Comparison): string {
  const name = cellLabels(comparison);
  const rows = comparison.runs.flatMap((run) => rowsOf(comparison, run, name));
  return [TITLES, ...rows].map((row) => `${row.map(field).join(',')}\r\n`).join('');
}

const LOSSES = { train: 'training loss', validation: 'validation loss', selection: 'selection loss' };

type Row = (string | number)[];

function rowsOf(
  { model, idleBytesPerSecond }: Comparison,
  run: ComparedRun,
  nameOf: (key: string) => string,
): Row[] {
  const { mode, seed, job, seconds, usage, results } = run;
  const row = (subject: string, measure: string, value: number | undefined, at: number | '' = ''): Row[] =>
    value === undefined || !Number.isFinite(value) ? [] : [[mode, seed, job, subject, measure, at, value]];
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
          row(nameOf(`${collection} ${geocode}`), LOSSES[kind], loss[kind], epoch),
        ),
      ),
    ),
    ...usage.trace.flatMap(({ seconds: at, cores, memoryBytes }) => [
      ...row('mean of nodes', 'cores', ifCounted(cores), Number(at.toFixed(2))),
      ...row('mean of nodes', 'memory bytes', ifCounted(memoryBytes), Number(at.toFixed(2))),
    ]),
  ];
}

function field(value: string | number): string {
  // Spreadsheets interpret a text with these first characters as a formula.
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
