import { Command } from 'commander';
import {
  type FilterOptions,
  filterOf,
  flag,
  number,
  type TargetOptions,
  withFilter,
  withResources,
  withTarget,
} from '../../options/option-groups.js';
import { runWrangle } from './run-derive.js';

type CoalesceFlags = TargetOptions & FilterOptions & { to: string; window?: number };

export function coalesceCommand(): Command {
  const command = new Command('coalesce')
    .description(
      'cut tiles to the cells and times of another collection; --bbox, --geocode and --datetime pick the tiles of that one',
    )
    .addOption(flag('--to <id>', 'the collection whose cells and times are taken over').makeOptionMandatory())
    .addOption(
      flag(
        '--window <days>',
        'where no scene overlaps a time, take the nearest within so many days; default 16',
        number,
      ),
    );
  return withTarget(withResources(withFilter(command))).action(async (flags: CoalesceFlags) => {
    const { to, window } = flags;
    await runWrangle('coalesce', 'coalesced', { filter: filterOf(flags), to, window }, flags);
  });
}
