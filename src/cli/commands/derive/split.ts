import { Command } from 'commander';
import {
  type FilterOptions,
  filterOf,
  flag,
  positiveInteger,
  type TargetOptions,
  withFilter,
  withResources,
  withTarget,
} from '../../options/option-groups.js';
import { runWrangle } from './run-derive.js';

type SplitFlags = TargetOptions & FilterOptions & { precision: number };

export function splitCommand(): Command {
  const command = new Command('split')
    .description('cut tiles into those of their finer cells')
    .addOption(
      flag(
        '--precision <n>',
        'length of the geocodes of the new cells',
        positiveInteger,
      ).makeOptionMandatory(),
    );
  return withTarget(withResources(withFilter(command))).action(async (flags: SplitFlags) => {
    await runWrangle('split', 'split', { filter: filterOf(flags), precision: flags.precision }, flags);
  });
}
