/** `tilewright compare`: its arguments and flags. `compare/compare.ts` runs it. */
import { Argument, Command, InvalidArgumentError } from 'commander';
import type { CompareFlags } from '../compare/compare.js';
import {
  addOptions,
  createOption,
  givenFlags,
  parseIntegerOption,
  RAW_SOURCE_HELP,
  splitList,
  TRAINING_MODE_NAMES,
  withJobOptions,
  withTrainingOptions,
} from '../options.js';

export function compareCommand(): Command {
  const command = addOptions(
    new Command('compare')
      .description(
        'train a model in several modes on your data and cluster, and report time, CPU, memory, bytes sent and accuracy; no model is stored',
      )
      .addArgument(new Argument('<model>', 'what to train').choices(['ndvi', 'ndmi', 'cloud-removal'])),
    [
      createOption(
        '--modes <list>',
        `training modes, separated by commas: ${TRAINING_MODE_NAMES.join(', ')}; costs are ratios of the first to each other one, accuracy is compared between every pair`,
        modes,
      ).default(['partitioned', 'distributed'], 'partitioned,distributed'),
      createOption('--seeds <list>', 'each mode trains once with each of these seeds', seeds).default(
        [1, 2, 3],
        '1,2,3',
      ),
      createOption('--out <dir>', 'folder for the report, compare-MODEL.html and .csv').default(
        './tilewright-compare',
      ),
    ],
  );
  withTrainingOptions(command);
  command.addHelpText('after', RAW_SOURCE_HELP);
  return withJobOptions(command).action(async (model: string, flags: CompareFlags) => {
    if (flags.modes.length === 0 || flags.seeds.length === 0)
      command.error('error: give at least one mode in --modes and one seed in --seeds');
    if (flags.placeMemory !== undefined && !flags.modes.includes('contained'))
      command.error('error: --place-memory goes with contained as one of --modes');
    // This import is slow, and help does not need it.
    const { runCompare } = await import('../compare/compare.js');
    const given = givenFlags(command, (name) => name !== 'token').map(quoted);
    await runCompare(model, flags, ['tilewright compare', model, ...given].join(' '));
  });
}

function modes(value: string): string[] {
  const asked = distinct(value);
  const unknown = asked.find((mode) => !TRAINING_MODE_NAMES.includes(mode));
  if (unknown !== undefined)
    throw new InvalidArgumentError(`"${unknown}" is not one of ${TRAINING_MODE_NAMES.join(', ')}.`);
  return asked;
}

/** The process `train` accepts seeds of 32 bits. */
const MAX_SEED = 2 ** 32 - 1;

function seeds(value: string): number[] {
  const all = distinct(value).map(parseIntegerOption);
  if (new Set(all).size < all.length) throw new InvalidArgumentError('Name each one once.');
  if (all.some((seed) => seed < 0 || seed > MAX_SEED))
    throw new InvalidArgumentError(`Seeds go from 0 to ${MAX_SEED}.`);
  return all;
}

function distinct(value: string): string[] {
  const all = splitList(value);
  if (new Set(all).size < all.length) throw new InvalidArgumentError('Name each one once.');
  return all;
}

/** Quotes a text so that a shell reads it as one word. */
const quoted = (text: string) =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
