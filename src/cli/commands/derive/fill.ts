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

type FillFlags = TargetOptions & FilterOptions & { window?: number; toCoverage?: number; toCloud?: number };

export function fillCommand(): Command {
  const command = new Command('fill')
    .description('complete tiles by pixels of dates near in time: where they have no data, cloud or shadow')
    .addOption(
      createOption(
        '--window <days>',
        'take pixels of dates up to so many days away; default 16',
        parseNumberOption,
      ),
    )
    .addOption(
      createOption(
        '--to-coverage <percent>',
        'until so much of the cell holds data; default 100',
        parseNumberOption,
      ),
    )
    .addOption(
      createOption('--to-cloud <percent>', 'and no more of it is cloud; default 0', parseNumberOption),
    );
  return withTarget(withResources(withFilterOptions(command))).action(async (flags: FillFlags) => {
    const { window, toCoverage, toCloud } = flags;
    await runDerive('fill', 'filled', { filter: toFilterParams(flags), window, toCoverage, toCloud }, flags);
  });
}
