/** Runs `tilewright compare`: the trainings, the report, and what is printed. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { NodeUsage } from '../../client/index.js';
import { messageOf } from '../../errors.js';
import { writeFileDurably } from '../../storage/index.js';
import type { TrainingMode } from '../../training/index.js';
import { version } from '../../version.js';
import type { TrainingFlags } from '../commands/training/training-options.js';
import { type OpenTarget, openTarget } from '../connect.js';
import { comparisonStopped, noOutFolder, usageUnknown } from '../errors.js';
import { type FilterOptions, filterOf, type TargetOptions } from '../options/option-groups.js';
import { duration, note, print, printJson, progressLine, table } from '../output/print.js';
import { interruptSignal } from '../signals.js';
import { differencesOf, hasFailedPlaces } from './cells.js';
import { compareModes } from './compare-modes.js';
import type { ComparedRun, Comparison, FailedRun } from './comparison-data.js';
import { csvOf } from './csv.js';
import { renderComparison } from './report.js';
import { baselinesText } from './summary.js';
import { accuracyTable, costTable, placeTable, type Table } from './tables.js';

export type CompareFlags = TargetOptions &
  FilterOptions &
  TrainingFlags & {
    modes: TrainingMode[];
    seeds: number[];
    out: string;
  };

/** The report shows `command`, the command line without the token. */
export async function runCompare(model: string, flags: CompareFlags, command: string): Promise<void> {
  const { modes, seeds, epochs, patience, validationFrom, engine, placeMemory, out } = flags;
  const target = await openTarget(flags);
  const line = progressLine('places');
  const files = { html: join(out, `compare-${model}.html`), csv: join(out, `compare-${model}.csv`) };
  const read = usageReader(target, flags);
  let unwritten: unknown;
  let ended = 0;
  const signal = interruptSignal();
  try {
    const nodes = await nodesThatMeasure(target);
    await mkdir(out, { recursive: true }).catch((error) => {
      throw noOutFolder.because(error, out, messageOf(error));
    });
    const context = { command, target: target.name, nodes, software: version };
    const comparison = await compareModes(
      target.client,
      { model, filter: filterOf(flags), epochs, patience, validationFrom, engine, placeMemory },
      { modes, seeds },
      read,
      {
        signal,
        onProgress: (what, progress) => line.update({ ...progress, message: `${what}: ${progress.message}` }),
        onRun: async (comparison, last) => {
          line.end();
          ended++;
          noteRun(comparison, last);
          const generatedAt = new Date().toISOString();
          unwritten = await writeReport([
            [files.html, renderComparison(comparison, { ...context, generatedAt })],
            [files.csv, csvOf(comparison)],
          ]);
        },
      },
    );
    if (flags.format === 'json') printJson(comparison);
    else printTables(comparison);
    for (const difference of differencesOf(comparison)) note(`warning: ${difference}`);
    if (unwritten === undefined) note(`report: ${files.html}, ${files.csv}`);
    const { runs, failed } = comparison;
    if (runs.length === 0 || unwritten !== undefined) process.exitCode = 1;
    else if (failed.length > 0 || hasFailedPlaces(comparison)) process.exitCode = 3;
  } catch (error) {
    line.end();
    const all = modes.length * seeds.length;
    if (signal.aborted)
      throw comparisonStopped.because(error, ended, all, ended > 0 ? files.html : 'no file');
    if (ended > 0) note(`${ended} of ${all} runs have ended: ${files.html}`);
    throw error;
  } finally {
    line.end();
    await target.close();
  }
}

/** A node in this process sends nothing, so the counters of the machine are left out. */
function usageReader({ client, name }: OpenTarget, { data }: TargetOptions): () => Promise<NodeUsage[]> {
  if (name !== data) return async () => (await client.usage()).nodes;
  return async () => (await client.usage()).nodes.map(({ network: _, ...usage }) => usage);
}

/** Returns the ids of the nodes. Throws TW_CLI_USAGE if a node does not report its usage, which the figures would lack. */
async function nodesThatMeasure({ client }: OpenTarget): Promise<string[]> {
  const { nodes, unanswered } = await client.usage();
  if (unanswered.length > 0) throw usageUnknown(unanswered);
  return nodes.map(({ id }) => id);
}

/** Replaces files. Warns and returns the error if one cannot be written, for example because a spreadsheet has it open. */
async function writeReport(files: [path: string, text: string][]): Promise<unknown> {
  try {
    for (const [path, text] of files) await writeFileDurably(path, text);
    return undefined;
  } catch (error) {
    note(`warning: the report is not written: ${messageOf(error)}`);
    return error;
  }
}

/** Prints a line about a training that has ended. */
function noteRun({ runs, failed, modes, seeds }: Comparison, last: ComparedRun | FailedRun): void {
  const which = `${runs.length + failed.length} of ${modes.length * seeds.length}: ${last.mode}, seed ${last.seed}`;
  if ('code' in last) {
    note(`${which}: failed: ${last.message} [${last.code}]`);
    return;
  }
  const { seconds, usage, results } = last;
  const mse = results.pooled ? `, MSE ${results.pooled.model.mse.toExponential(2)}` : '';
  note(`${which}: ${duration(seconds)}, ${usage.cpuSeconds.toFixed(1)} CPU s${mse}`);
}

function printTables(comparison: Comparison): void {
  for (const shown of [costTable, accuracyTable, placeTable]) {
    printTable(shown(comparison));
    if (shown === accuracyTable) print(baselinesText(comparison));
    print();
  }
}

function printTable({ caption, titles, rows }: Table): void {
  print(caption);
  for (const text of table([titles, ...rows])) print(text);
}
