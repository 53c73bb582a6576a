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

type FillFlags = JobOptions & { window?: number; toCoverage?: number; toCloud?: number };

export function fillCommand(): Command {
  const command = addOptions(
    new Command('fill').description(
      'fill pixels without data, with cloud or with shadow from dates near in time',
    ),
    [
      createOption(
        '--window <days>',
        'use pixels of dates up to this many days away; default 16',
        parseNumberOption,
      ),
      createOption(
        '--to-coverage <percent>',
        'stop when this much of the cell has data; default 100',
        parseNumberOption,
      ),
      createOption(
        '--to-cloud <percent>',
        'fill until the cloud cover is at most this percentage; default 0',
        parseNumberOption,
      ),
    ],
  );
  return withJobOptions(command).action(async (flags: FillFlags) => {
    const { window, toCoverage, toCloud } = flags;
    await runDerive('fill', 'filled', { filter: toFilterParams(flags), window, toCoverage, toCloud }, flags);
  });
}
