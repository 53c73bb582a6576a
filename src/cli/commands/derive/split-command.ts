import { Command } from 'commander';
import {
  createOption,
  type FilterOptions,
  parsePositiveIntegerOption,
  type TargetOptions,
  toFilterParams,
  withFilterOptions,
  withResources,
  withTarget,
} from '../../options/index.js';
import { runDerive } from './run-derive-command.js';

type SplitFlags = TargetOptions & FilterOptions & { precision: number };

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
  return withTarget(withResources(withFilterOptions(command))).action(async (flags: SplitFlags) => {
    await runDerive('split', 'split', { filter: toFilterParams(flags), precision: flags.precision }, flags);
  });
}
