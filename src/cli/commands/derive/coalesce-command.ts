import { Command } from 'commander';
import {
  addOptions,
  createOption,
  type JobOptions,
  parseNumberOption,
  toFilterParams,
  withJobOptions,
} from '../../options/index.js';
import { runDerive } from './run-derive-command.js';

type CoalesceFlags = JobOptions & { to: string; window?: number };

export function coalesceCommand(): Command {
  const command = addOptions(
    new Command('coalesce').description(
      'resample tiles to the cells and times of another collection; --bbox, --geocode and --datetime select tiles of that collection',
    ),
    [
      createOption('--to <id>', 'the collection whose cells and times are used').makeOptionMandatory(),
      createOption(
        '--window <days>',
        'if no scene overlaps a time, use the nearest scene within this many days; default 16',
        parseNumberOption,
      ),
    ],
  );
  return withJobOptions(command).action(async (flags: CoalesceFlags) => {
    const { to, window } = flags;
    await runDerive('coalesce', 'coalesced', { filter: toFilterParams(flags), to, window }, flags);
  });
}
