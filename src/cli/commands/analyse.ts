import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Command } from 'commander';
import type { ComponentsResults, StatsResults, TileCounts } from '../../analysis/index.js';
import { interruptSignal } from '../interrupt.js';
import {
  type FilterOptions,
  filterOf,
  flag,
  positiveInteger,
  type TargetOptions,
  withFilter,
  withResources,
  withTarget,
} from '../options.js';
import { count, duration, note, print, printJson, progressLine, table } from '../output.js';
import { openTarget } from '../target.js';
import { splitBands } from './tensor.js';

type AnalyseFlags = TargetOptions & FilterOptions & { bands?: string; components?: number; output?: string };

type Results = TileCounts & { files: string[]; seconds: number };

export function analyseCommand(): Command {
  return new Command('analyse')
    .description('analyse the spectra of a hyperspectral collection over all its tiles')
    .addCommand(
      analysis<StatsResults>(
        'stats',
        'mean, standard deviation, covariance and correlation of its bands',
        printStats,
      ),
    )
    .addCommand(
      withComponents(analysis<ComponentsResults>('pca', 'maps of its principal components', printComponents)),
    )
    .addCommand(
      withComponents(
        analysis<ComponentsResults>(
          'mnf',
          'maps of its minimum noise fractions: components by their signal-to-noise ratio',
          printComponents,
        ),
      ),
    );
}

function withComponents(command: Command): Command {
  return command.addOption(
    flag('--components <n>', 'components to make maps of; default 10', positiveInteger),
  );
}

function analysis<R extends Results>(name: string, description: string, show: (results: R) => void): Command {
  const command = new Command(name)
    .description(description)
    .addOption(
      flag(
        '--bands <list>',
        'names or wavelengths such as 660nm,860nm; default: all good bands that hold data',
      ),
    )
    .addOption(flag('--output <folder>', 'also write the files of the result into this folder'));
  return withTarget(withResources(withFilter(command))).action(async (flags: AnalyseFlags) => {
    const target = await openTarget(flags);
    const line = progressLine('tiles');
    try {
      const { components, output } = flags;
      const bands = flags.bands === undefined ? undefined : splitBands(flags.bands);
      const { job, results } = await target.client.run<R>(
        `analyse-${name}`,
        { filter: filterOf(flags), bands, components },
        { signal: interruptSignal(), onProgress: line.update },
      );
      line.end();
      if (output !== undefined) {
        await mkdir(output, { recursive: true });
        for (const file of results.files) await target.client.download(job, file, join(output, file));
      }
      if (flags.format === 'json') return printJson({ job, ...results });
      show(results);
      printEnd(results, output);
    } finally {
      line.end();
      await target.close();
    }
  });
}

function printStats({ bands, pixels, tiles }: StatsResults): void {
  const rows = bands.map(({ name, wavelength, mean, std }) => [
    name,
    wavelength.toFixed(1),
    mean.toPrecision(5),
    std.toPrecision(4),
  ]);
  for (const line of table([['band', 'nm', 'mean', 'std'], ...rows])) print(line);
  print(`${count(pixels, 'pixel')} of ${count(tiles, 'tile')}`);
}

function printComponents({
  eigenvalues,
  shares,
  pixels,
  tiles,
  unchanged,
  source,
  collection,
}: ComponentsResults): void {
  const rows = eigenvalues
    .slice(0, LISTED)
    .map((value, i) => [
      `${i + 1}`,
      value.toPrecision(5),
      ...(shares ? [`${(100 * shares[i]!).toFixed(2)} %`] : []),
    ]);
  const headings = shares ? ['component', 'variance', 'share'] : ['component', 'signal and noise to noise'];
  for (const line of table([headings, ...rows])) print(line);
  print(`${count(pixels, 'pixel')}; ${count(tiles, 'tile')} made, ${unchanged} unchanged`);
  print(`maps: --collection ${collection} --source ${source}`);
}

const LISTED = 10;

function printEnd({ skipped, failures, failed, files, seconds }: Results, output: string | undefined): void {
  for (const [reason, number] of Object.entries(skipped))
    note(`${count(number, 'tile')} left out: ${reason}`);
  for (const { tile, message } of failed) note(`failed: ${tile}: ${message}`);
  const written = output === undefined ? '' : `${count(files.length, 'file')} in ${output}, `;
  print(`${written}${duration(seconds)}`);
  if (failures > 0) process.exitCode = 3;
}
