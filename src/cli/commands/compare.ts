import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Argument, Command, InvalidArgumentError } from 'commander';
import type { NodeUsage } from '../../client/index.js';
import { messageOf } from '../../errors.js';
import { TRAINING_MODES, type TrainingMode } from '../../training/index.js';
import { version } from '../../version.js';
import {
  accuracyTable,
  baselinesText,
  type ComparedRun,
  type Comparison,
  compareModes,
  costTable,
  csvOf,
  differencesOf,
  type FailedRun,
  hasFailedPlaces,
  placeTable,
  renderComparison,
  type Table,
} from '../compare/index.js';
import { comparisonStopped, usageUnknown } from '../errors.js';
import { interruptSignal } from '../interrupt.js';
import {
  bytes,
  type FilterOptions,
  filterOf,
  flag,
  instant,
  integer,
  listed,
  positiveInteger,
  RAW_UNLESS_ASKED,
  type TargetOptions,
  withFilter,
  withResources,
  withTarget,
} from '../options.js';
import { duration, note, print, printJson, progressLine, table } from '../output.js';
import { type OpenTarget, openTarget } from '../target.js';
import { engineFlag } from './engine-flag.js';

type CompareFlags = TargetOptions &
  FilterOptions & {
    modes: TrainingMode[];
    seeds: number[];
    epochs?: number;
    patience?: number;
    validationFrom?: string;
    engine?: string;
    placeMemory?: number;
    out: string;
  };

export function compareCommand(): Command {
  const command = new Command('compare')
    .description(
      'train a model in several modes on your data and cluster, and report time, CPU, memory, bytes sent and accuracy; no model is stored',
    )
    .addArgument(new Argument('<model>', 'what to train').choices(['ndvi', 'ndmi', 'cloud-removal']))
    .addOption(
      flag(
        '--modes <list>',
        'modes of training, with commas; the others are compared with the first',
        modes,
      ).default(['partitioned', 'distributed'], 'partitioned,distributed'),
    )
    .addOption(
      flag('--seeds <list>', 'each mode trains once with each of these', seeds).default([1, 2, 3], '1,2,3'),
    )
    .addOption(
      flag(
        '--epochs <n>',
        'passes over the training patches, by default 30, of cloud-removal 12',
        positiveInteger,
      ),
    )
    .addOption(
      flag(
        '--patience <n>',
        'stop a training if the loss on its selection patches has not improved for n epochs',
        positiveInteger,
      ),
    )
    .addOption(
      flag(
        '--validation-from <time>',
        'hold out dates from this time on, RFC 3339 or a date; default: the last quarter of the tiles',
        instant,
      ),
    )
    .addOption(engineFlag())
    .addOption(
      flag('--place-memory <size>', 'contained: memory that a process may take, 1MB or more', placeMemoryOf),
    )
    .addOption(
      flag('--out <dir>', 'folder for the report, compare-MODEL.html and .csv').default(
        './tilewright-compare',
      ),
    );
  command.addHelpText('after', RAW_UNLESS_ASKED);
  return withTarget(withResources(withFilter(command))).action(async (model: string, flags: CompareFlags) => {
    const { modes, seeds, epochs, patience, validationFrom, engine, placeMemory, out } = flags;
    if (modes.length === 0 || seeds.length === 0)
      command.error('error: give at least one of --modes and of --seeds');
    if (placeMemory !== undefined && !modes.includes('contained'))
      command.error('error: --place-memory goes with contained as one of --modes');
    await mkdir(out, { recursive: true });
    const target = await openTarget(flags);
    const line = progressLine('places');
    const files = { html: join(out, `compare-${model}.html`), csv: join(out, `compare-${model}.csv`) };
    const read = usageReader(target, flags);
    let unwritten: unknown;
    let ended = 0;
    const signal = interruptSignal();
    try {
      const nodes = await nodesThatMeasure(target);
      const context = { command: commandText(command, model), target: target.name, nodes, software: version };
      const comparison = await compareModes(
        target.client,
        { model, filter: filterOf(flags), epochs, patience, validationFrom, engine, placeMemory },
        { modes, seeds },
        read,
        {
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
  });
}

/** Bytes; the process `train` takes no less. */
function placeMemoryOf(value: string): number {
  const size = bytes(value);
  if (size < 1e6) throw new InvalidArgumentError('It must be 1MB or more.');
  return size;
}

function modes(value: string): TrainingMode[] {
  const asked = distinct(value);
  const unknown = asked.find((mode) => !(TRAINING_MODES as readonly string[]).includes(mode));
  if (unknown !== undefined)
    throw new InvalidArgumentError(`"${unknown}" is none of ${TRAINING_MODES.join(', ')}.`);
  return asked as TrainingMode[];
}

/** Seeds of the process `train` have 32 bits. */
const MOST_SEED = 2 ** 32 - 1;

function seeds(value: string): number[] {
  const all = distinct(value).map(integer);
  if (new Set(all).size < all.length) throw new InvalidArgumentError('Name each one once.');
  if (all.some((seed) => seed < 0 || seed > MOST_SEED))
    throw new InvalidArgumentError(`Seeds go from 0 to ${MOST_SEED}.`);
  return all;
}

function distinct(value: string): string[] {
  const all = listed(value);
  if (new Set(all).size < all.length) throw new InvalidArgumentError('Name each one once.');
  return all;
}

/** A node in this process sends nothing; what the machine sends is not its own. */
function usageReader({ client, name }: OpenTarget, { data }: TargetOptions): () => Promise<NodeUsage[]> {
  if (name !== data) return async () => (await client.usage()).nodes;
  return async () => (await client.usage()).nodes.map(({ network: _, ...usage }) => usage);
}

/** Ids of the nodes. Throws TW_CLI_USAGE if one does not tell what it uses: the figures would lack it. */
async function nodesThatMeasure({ client }: OpenTarget): Promise<string[]> {
  const { nodes, unanswered } = await client.usage();
  if (unanswered.length > 0) throw usageUnknown(unanswered);
  return nodes.map(({ id }) => id);
}

/** Replaces files. Returns the error of one that cannot be written, such as one that a spreadsheet holds open, after a warning. */
async function writeReport(files: [path: string, text: string][]): Promise<unknown> {
  try {
    for (const [path, text] of files) {
      const part = `${path}.part`;
      await writeFile(part, text);
      await rename(part, path);
    }
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

/** The command with its flags, from the command line, the environment and the config file, without the token. */
function commandText(command: Command, model: string): string {
  const given = command.options.flatMap((option): string[] => {
    const name = option.attributeName();
    const value: unknown = command.getOptionValue(name);
    const source = command.getOptionValueSource(name);
    if (value === undefined || source === undefined || source === 'default' || name === 'token') return [];
    if (option.isBoolean()) return value ? [option.long!] : [];
    const text = Array.isArray(value)
      ? value.join(',')
      : typeof value === 'object'
        ? JSON.stringify(value)
        : String(value);
    return [option.long!, quoted(text)];
  });
  return ['tilewright compare', model, ...given].join(' ');
}

/** As a shell takes it for one word. */
const quoted = (text: string) =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
