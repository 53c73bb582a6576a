/** Runs an analysis and prints its results, for the subcommands of `analyse`, which also take spectra from a library file. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Command, type Option } from 'commander';
import { formatDuration } from '../../html/index.js';
import type { ClassifyResults, MapResults } from '../../hyperspectral/index.js';
import type { TileCounts, Timed } from '../../jobs/index.js';
import { plural } from '../../utils/text.js';
import { runJob, withConnection } from '../connection.js';
import { labelsMissing, noSuchTargets } from '../errors.js';
import {
  addOptions,
  createOption,
  type JobOptions,
  optionValues,
  splitBands,
  splitList,
  toFilterParams,
  withJobOptions,
} from '../options.js';
import { formatPercent, logToStderr, print, printJson, printTable } from '../output.js';

export type AnalyseFlags = JobOptions & { bands?: string; output?: string };

type Results = TileCounts & { files: string[] };

interface Analysis<Flags, R> {
  name: string;
  description: string;
  options?: Option[];
  /** The inputs of the process; by default the values of the options. */
  inputsOf?(flags: Flags): Promise<object>;
  print(results: R, flags: Flags): void;
  /** Runs something other than the analysis if the flags ask for it; otherwise returns undefined. */
  instead?(flags: Flags): Promise<void> | undefined;
}

/** The command of an analysis. */
export function analysisCommand<R extends Results, Flags extends AnalyseFlags = AnalyseFlags>({
  name,
  description,
  options = [],
  inputsOf = async (flags) => optionValues(options, flags),
  print: printResults,
  instead,
}: Analysis<Flags, R>): Command {
  const command = addOptions(new Command(name).description(description), [
    ...options,
    createOption(
      '--bands <list>',
      'names or wavelengths such as 660nm,860nm; default: all good bands with data',
    ),
    createOption('--output <folder>', 'also write the files of the result into this folder'),
  ]);
  return withJobOptions(command).action(async (flags: Flags) => {
    const other = instead?.(flags);
    if (other) return other;
    const { output } = flags;
    const bands = flags.bands === undefined ? undefined : splitBands(flags.bands);
    const inputs = { bands, ...(await inputsOf(flags)) };
    return withConnection(flags, async ({ client }) => {
      const given = { filter: toFilterParams(flags), ...inputs };
      const { job, results } = await runJob('tiles', (hooks) =>
        client.run<R>(`analyse-${name}`, given, hooks),
      );
      if (output !== undefined) {
        await mkdir(output, { recursive: true });
        for (const file of results.files) await client.download(job, file, join(output, file));
      }
      if (results.failures > 0) process.exitCode = 3;
      if (flags.format === 'json') return printJson({ job, ...results });
      printResults(results, flags);
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

export const LIBRARY_FILE_HELP =
  'ENVI spectral library (.sli or .hdr), or CSV with a column of wavelengths and a column for each spectrum';

export const targetsOption = () =>
  createOption('--targets <names>', 'spectra of the library, separated by commas; default all');

/** The input of a request: the library with the spectra `targets`, by default all. Throws TW_CLI_TARGETS. */
export async function readLibraryInput(path: string, targets: string | undefined): Promise<object> {
  // This import is slow, and only some analyses read a library.
  const { readLibrary } = await import('../../hyperspectral/index.js');
  const { wavelengths, spectra, warning } = await readLibrary(path);
  if (warning !== undefined) logToStderr(`${path}: ${warning}`);
  const names = targets === undefined ? undefined : splitList(targets);
  const missing = names?.filter((name) => !spectra.some((one) => one.name === name)) ?? [];
  if (missing.length > 0)
    throw noSuchTargets(
      path,
      missing,
      spectra.map(({ name }) => name),
    );
  const chosen = names ? spectra.filter(({ name }) => names.includes(name)) : spectra;
  return { wavelengths, spectra: chosen };
}

export interface LabelFlags {
  labels?: string;
  labelCollection?: string;
}

export const labelOptions = () => [
  createOption(
    '--labels <file>',
    'raster of codes (0 for none), or GeoJSON of points and polygons with a property "class"',
  ),
  createOption('--label-collection <id>', 'a collection whose tiles of the same cells hold codes'),
];

/** The input of a request. Throws TW_CLI_LABELS and the errors of labels. */
export async function readLabelsInput({ labels, labelCollection }: LabelFlags): Promise<object> {
  if ((labels === undefined) === (labelCollection === undefined)) throw labelsMissing();
  if (labels === undefined) return { collection: labelCollection };
  const { readLabels } = await import('../../hyperspectral/index.js');
  return readLabels(labels);
}

type Interval = ClassifyResults['oaInterval'];

export const intervalText = (interval: Interval, format: (value: number) => string) =>
  interval ? ` (95 % ${interval.map(format).join(' to ')})` : '';

type Accuracy = Pick<
  ClassifyResults,
  'oa' | 'oaInterval' | 'aa' | 'kappa' | 'kappaInterval' | 'pixels' | 'squares'
>;

export function accuracyText({
  oa,
  oaInterval,
  aa,
  kappa,
  kappaInterval,
  pixels,
  squares,
}: Accuracy): string {
  const kappaText = `${kappa.toFixed(3)}${intervalText(kappaInterval, (value) => value.toFixed(3))}`;
  return `overall accuracy ${formatPercent(oa)}${intervalText(oaInterval, formatPercent)}, average ${formatPercent(aa)}, kappa ${kappaText}, on ${plural(pixels, 'pixel')} in ${plural(squares, 'square')}`;
}

/** `names`: those of the classes, in their order. */
export function printClassAccuracy(classes: ClassifyResults['classes'], names: readonly string[]): void {
  const rows = classes.map(({ code, pixels, squares, recall, precision, f1, f1Interval }, c) => [
    `${code}`,
    names[c]!,
    `${pixels}`,
    `${squares}`,
    ...(pixels > 0 ? [formatPercent(recall), formatPercent(precision), f1.toFixed(3)] : ['', '', '']),
    f1Interval ? f1Interval.map((value) => value.toFixed(3)).join(' to ') : 'too few squares',
  ]);
  printTable([['code', 'class', 'pixels', 'squares', 'recall', 'precision', 'F1', '95 % interval'], ...rows]);
}
