import { Command } from 'commander';
import {
  createOption,
  type JobOptions,
  parsePositiveIntegerOption,
  toFilterParams,
  withJobOptions,
} from '../../options/index.js';
import { runDerive } from './run-derive-command.js';

type SplitFlags = JobOptions & { precision: number };

export function splitCommand(): Command {
  const command = new Command('split')
    .description('split tiles into tiles of finer cells')
    .addOption(
      createOption(
        '--precision <n>',
        'length of the geocodes of the new cells',
        parsePositiveIntegerOption,
      ).makeOptionMandatory(),
    );
  return withJobOptions(command).action(async (flags: SplitFlags) => {
    await runDerive('split', 'split', { filter: toFilterParams(flags), precision: flags.precision }, flags);
  });
}
