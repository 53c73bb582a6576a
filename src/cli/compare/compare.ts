/**
 * Runs `tilewright compare`, which trains one model in several modes and reports accuracy and cost as text, HTML and CSV. The benchmark
 * of training uses the files of this folder too. Invariant: no model is stored.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../errors.js';
import { formatDuration } from '../../html/index.js';
import { writeFileDurably } from '../../storage/index.js';
import type { TrainingMode } from '../../training/index.js';
import { version } from '../../version.js';
import { type Connection, withConnection } from '../connection.js';
import { comparisonStopped, nodeUsageUnknown, noOutFolder } from '../errors.js';
import { type JobOptions, type TrainingOptions, toTrainingInputs } from '../options.js';
import { logToStderr, print, printJson, printTable, withProgressLine } from '../output.js';
import { interruptSignal } from '../process.js';
import { describeDifferences, hasFailedCells, trainingWarnings } from './measures.js';
import { renderComparison } from './report.js';
import { type ComparedRun, type Comparison, compareModes, type FailedRun } from './runs.js';
import { baselinesText, verdicts } from './summary.js';
import { accuracyTable, cellTable, costTable, questionTable, toCsv, verdictTable } from './tables.js';
import type { ReadUsage } from './usage.js';

export type CompareFlags = JobOptions &
  TrainingOptions & {
    modes: TrainingMode[];
    seeds: number[];
    out: string;
  };

/** `command` is the command line without the token, which the report shows. */
export async function runCompare(model: string, flags: CompareFlags, command: string): Promise<void> {
  const { modes, seeds, out } = flags;
  const files = { html: join(out, `compare-${model}.html`), csv: join(out, `compare-${model}.csv`) };
  let unwritten: unknown;
  let ended = 0;
  return withConnection(flags, async (target) => {
    const signal = interruptSignal();
    try {
      const nodes = await nodesThatMeasure(target);
      await mkdir(out, { recursive: true }).catch((error) => {
        throw noOutFolder.because(error, out, messageOf(error));
      });
      const context = { command, target: target.name, nodes, software: version };
      const inputs = { model, ...toTrainingInputs(flags) };
      const comparison = await withProgressLine('places', (line) =>
        compareModes(target.client, inputs, { modes, seeds }, usageReader(target, flags.data), {
          signal,
          onProgress: (what, progress) =>
            line.update({ ...progress, message: `${what}: ${progress.message}` }),
          onRun: async (comparison, last) => {
            line.end();
            ended++;
            noteRun(comparison, last);
            const generatedAt = new Date().toISOString();
            unwritten = await writeReport([
              [files.html, renderComparison(comparison, { ...context, generatedAt })],
              [files.csv, toCsv(comparison)],
            ]);
          },
        }),
      );
      if (flags.format === 'json') printJson({ ...comparison, verdicts: verdicts(comparison) });
      else printTables(comparison);
      for (const text of [...describeDifferences(comparison), ...trainingWarnings(comparison)])
        logToStderr(`warning: ${text}`);
      if (unwritten === undefined) logToStderr(`report: ${files.html}, ${files.csv}`);
      const { runs, failed } = comparison;
      if (runs.length === 0 || unwritten !== undefined) process.exitCode = 1;
      else if (failed.length > 0 || hasFailedCells(comparison)) process.exitCode = 3;
    } catch (error) {
      const all = modes.length * seeds.length;
      if (signal.aborted)
        throw comparisonStopped.because(error, ended, all, ended > 0 ? files.html : 'no file');
      if (ended > 0) logToStderr(`${ended} of ${all} runs have ended: ${files.html}`);
      throw error;
    }
  });
}

/** A node in this process sends nothing, so the counters of the machine are left out. */
function usageReader({ client, name }: Connection, data: string): ReadUsage {
  if (name !== data) return async () => (await client.usage()).nodes;
  return async () => (await client.usage()).nodes.map(({ network: _, ...usage }) => usage);
}

/** Returns the ids of the nodes. Throws TW_CLI_USAGE if a node does not report its usage, because the figures would be incomplete. */
async function nodesThatMeasure({ client }: Connection): Promise<string[]> {
  const { nodes, unanswered } = await client.usage();
  if (unanswered.length > 0) throw nodeUsageUnknown(unanswered);
  return nodes.map(({ id }) => id);
}

/** Replaces files. Warns and returns the error if one cannot be written, for example because a spreadsheet has it open. */
async function writeReport(files: [path: string, text: string][]): Promise<unknown> {
  try {
    for (const [path, text] of files) await writeFileDurably(path, text);
    return undefined;
  } catch (error) {
    logToStderr(`warning: the report cannot be written: ${messageOf(error)}`);
    return error;
  }
}

/** Prints a line about a training that has ended. */
function noteRun({ runs, failed, modes, seeds }: Comparison, last: ComparedRun | FailedRun): void {
  const which = `${runs.length + failed.length} of ${modes.length * seeds.length}: ${last.mode}, seed ${last.seed}`;
  if ('code' in last) {
    logToStderr(`${which}: failed: ${last.message} [${last.code}]`);
    return;
  }
  const { seconds, usage, results } = last;
  const mse = results.pooled ? `, MSE ${results.pooled.model.mse.toExponential(2)}` : '';
  logToStderr(`${which}: ${formatDuration(seconds)}, ${usage.cpuSeconds.toFixed(1)} CPU s${mse}`);
}

function printTables(comparison: Comparison): void {
  for (const shown of [costTable, accuracyTable, questionTable, verdictTable, cellTable]) {
    const { caption, titles, rows } = shown(comparison);
    if (rows.length === 0) continue;
    print(caption);
    printTable([titles, ...rows]);
    if (shown === accuracyTable) print(baselinesText(comparison));
    print();
  }
}
