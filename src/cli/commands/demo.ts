import { resolve } from 'node:path';
import { Command } from 'commander';
import {
  type CommonOptions,
  createOption,
  parsePositiveIntegerOption,
  type ResourceOptions,
  withCommon,
  withResources,
} from '../options/option-groups.js';
import { interruptSignal } from '../signals.js';

interface DemoFlags extends CommonOptions, ResourceOptions {
  out: string;
  epochs?: number;
}

export function demoCommand(): Command {
  const command = new Command('demo')
    .description('the main job, start to finish: ingest, search, train, report')
    .argument('[path]', 'a scene of your own; without it, sample scenes are made')
    .addOption(createOption('--out <dir>', 'folder for the data and the report').default('./tilewright-demo'))
    .addOption(createOption('--epochs <n>', 'passes over the training patches', parsePositiveIntegerOption));
  return withCommon(withResources(command)).action(async (path: string | undefined, flags: DemoFlags) => {
    // Loaded here, so that other commands do not wait for what only the demo needs.
    const { runDemo } = await import('../demo/demo.js');
    await runDemo({
      ...flags,
      out: resolve(flags.out),
      path: path && resolve(path),
      signal: interruptSignal(),
    });
  });
}
