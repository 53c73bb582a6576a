/** The runner and the output that the commands of all analyses share. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { formatDuration } from '../../../html/index.js';
import type { MapResults } from '../../../hyperspectral/index.js';
import type { TileCounts, Timed } from '../../../jobs/index.js';
import { plural } from '../../../plural.js';
import { withProgress } from '../../connection.js';
import {
  addOptions,
  createOption,
  type FilterOptions,
  splitBands,
  type TargetOptions,
  toFilterParams,
  withFilterOptions,
  withResources,
  withTarget,
} from '../../options/index.js';
import { logToStderr, print, printJson } from '../../output/index.js';
import { interruptSignal } from '../../signals.js';

export type AnalyseFlags = TargetOptions & FilterOptions & { bands?: string; output?: string };

type Results = TileCounts & { files: string[] };

/** Adds options and an action to a command. The action runs the analysis that has the name of the command. */
export function analysisCommand<Flags extends AnalyseFlags, R extends Results>(
  command: Command,
  inputsOf: (flags: Flags) => Promise<object>,
  show: (results: R, flags: Flags) => void,
  /** Runs something other than the analysis if the flags ask for it; otherwise returns undefined. */
  instead: (flags: Flags) => Promise<void> | undefined = () => undefined,
): Command {
  addOptions(command, [
    createOption(
      '--bands <list>',
      'names or wavelengths such as 660nm,860nm; default: all good bands with data',
    ),
    createOption('--output <folder>', 'also write the files of the result into this folder'),
  ]);
  return withTarget(withResources(withFilterOptions(command))).action(async (flags: Flags) => {
    const other = instead(flags);
    if (other) return other;
    const inputs = await inputsOf(flags);
    return withProgress(flags, 'tiles', async (target, line) => {
      const { output } = flags;
      const bands = flags.bands === undefined ? undefined : splitBands(flags.bands);
      const { job, results } = await target.client.run<R>(
        `analyse-${command.name()}`,
        { filter: toFilterParams(flags), bands, ...inputs },
        { signal: interruptSignal(), onProgress: line.update },
      );
      line.end();
      if (output !== undefined) {
        await mkdir(output, { recursive: true });
        for (const file of results.files) await target.client.download(job, file, join(output, file));
      }
      if (results.failures > 0) process.exitCode = 3;
      if (flags.format === 'json') return printJson({ job, ...results });
      show(results, flags);
      printEnd(results, output);
    });
  });
}

export function loadingText(loading = 0): string {
  return loading > 0
    ? `; with fewer than 10 pixels for each band, ${loading} of the mean variance was added to the diagonal of the covariance`
    : '';
}

export function printMaps({ tiles, unchanged, source, collection }: MapResults): void {
  print(
    `${plural(tiles, 'tile')} made, ${unchanged} unchanged: --collection ${collection} --source ${source}`,
  );
}

function printEnd({ skipped, failed, files, seconds }: Timed<Results>, output: string | undefined): void {
  for (const [reason, number] of Object.entries(skipped)) logToStderr(`tiles skipped: ${number} (${reason})`);
  for (const { tile, message } of failed) logToStderr(`failed: ${tile}: ${message}`);
  const written = output === undefined ? '' : `${plural(files.length, 'file')} in ${output}, `;
  print(`${written}${formatDuration(seconds)}`);
}
