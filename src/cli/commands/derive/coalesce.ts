import { Command } from 'commander';
import {
  createOption,
  type FilterOptions,
  parseNumberOption,
  type TargetOptions,
  toFilterParams,
  withFilterOptions,
  withResources,
  withTarget,
} from '../../options/option-groups.js';
import { runDerive } from './run-derive.js';

type CoalesceFlags = TargetOptions & FilterOptions & { to: string; window?: number };

export function coalesceCommand(): Command {
  const command = new Command('coalesce')
    .description(
      'cut tiles to the cells and times of another collection; --bbox, --geocode and --datetime pick the tiles of that one',
    )
    .addOption(
      createOption('--to <id>', 'the collection whose cells and times are taken over').makeOptionMandatory(),
    )
    .addOption(
      createOption(
        '--window <days>',
        'where no scene overlaps a time, take the nearest within so many days; default 16',
        parseNumberOption,
      ),
    );
  return withTarget(withResources(withFilterOptions(command))).action(async (flags: CoalesceFlags) => {
    const { to, window } = flags;
    await runDerive('coalesce', 'coalesced', { filter: toFilterParams(flags), to, window }, flags);
  });
}
