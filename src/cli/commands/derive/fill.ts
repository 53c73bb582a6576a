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

type FillFlags = TargetOptions & FilterOptions & { window?: number; toCoverage?: number; toCloud?: number };

export function fillCommand(): Command {
  const command = new Command('fill')
    .description('complete tiles by pixels of dates near in time: where they have no data, cloud or shadow')
    .addOption(flag('--window <days>', 'take pixels of dates up to so many days away; default 16', number))
    .addOption(flag('--to-coverage <percent>', 'until so much of the cell holds data; default 100', number))
    .addOption(flag('--to-cloud <percent>', 'and no more of it is cloud; default 0', number));
  return withTarget(withResources(withFilter(command))).action(async (flags: FillFlags) => {
    const { window, toCoverage, toCloud } = flags;
    await runWrangle('fill', 'filled', { filter: filterOf(flags), window, toCoverage, toCloud }, flags);
  });
}
