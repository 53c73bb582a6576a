/** `tilewright demo`: its argument and flags. Help does not load the demo. */
import { resolve } from 'node:path';
import { Command } from 'commander';
import {
  addOptions,
  type CommonOptions,
  createOption,
  parsePositiveIntegerOption,
  type ResourceOptions,
  withCommon,
  withResources,
} from '../options.js';
import { interruptSignal } from '../process.js';

interface DemoFlags extends CommonOptions, ResourceOptions {
  out: string;
  epochs?: number;
}

export function demoCommand(): Command {
  const command = addOptions(
    new Command('demo')
      .description('run the main workflow: ingest, search, train, report')
      .argument('[path]', 'your own scene; without it, sample scenes are generated'),
    [
      createOption('--out <dir>', 'folder for the data and the report').default('./tilewright-demo'),
      createOption('--epochs <n>', 'passes over the training patches', parsePositiveIntegerOption),
    ],
  );
  return withCommon(withResources(command)).action(async (path: string | undefined, flags: DemoFlags) => {
    // This import is slow, and help does not need it.
    const { runDemo } = await import('../demo.js');
    await runDemo({
      ...flags,
      out: resolve(flags.out),
      path: path && resolve(path),
      signal: interruptSignal(),
    });
  });
}
