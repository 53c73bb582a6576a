/** Commands that derive tiles from tiles: the process has the name of the command, and the options of the command as inputs. */
import { Command, type Option } from 'commander';
import type { TileSource } from '../../../storage/index.js';
import {
  addOptions,
  createOption,
  type JobOptions,
  optionValues,
  parseNumberOption,
  parsePositiveIntegerOption,
  toFilterParams,
  withJobOptions,
} from '../../options/index.js';
import { runDerive } from './run-derive-command.js';

function deriveCommand(name: string, description: string, source: TileSource, options: Option[]): Command {
  const command = addOptions(new Command(name).description(description), options);
  return withJobOptions(command).action(async (flags: JobOptions) => {
    await runDerive(name, source, { filter: toFilterParams(flags), ...optionValues(options, flags) }, flags);
  });
}

export const coalesceCommand = () =>
  deriveCommand(
    'coalesce',
    'resample tiles to the cells and times of another collection; --bbox, --geocode and --datetime select tiles of that collection',
    'coalesced',
    [
      createOption('--to <id>', 'the collection whose cells and times are used').makeOptionMandatory(),
      createOption(
        '--window <days>',
        'if no scene overlaps a time, use the nearest scene within this many days; default 16',
        parseNumberOption,
      ),
    ],
  );

export const fillCommand = () =>
  deriveCommand(
    'fill',
    'fill pixels without data, with cloud or with shadow from dates near in time',
    'filled',
    [
      createOption(
        '--window <days>',
        'use pixels of dates up to this many days away; default 16',
        parseNumberOption,
      ),
      createOption(
        '--to-coverage <percent>',
        'fill until this percentage of the cell has data; default 100',
        parseNumberOption,
      ),
      createOption(
        '--to-cloud <percent>',
        'fill until the cloud cover is at most this percentage; default 0',
        parseNumberOption,
      ),
    ],
  );

export const splitCommand = () =>
  deriveCommand('split', 'split tiles into tiles of finer cells', 'split', [
    createOption(
      '--precision <n>',
      'length of the geocodes of the new cells',
      parsePositiveIntegerOption,
    ).makeOptionMandatory(),
  ]);
