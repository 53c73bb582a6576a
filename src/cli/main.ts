#!/usr/bin/env node
/** The `tilewright` command. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 some inputs failed. */
import { Command, CommanderError } from 'commander';
import { messageOf, TilewrightError } from '../errors.js';
import { version } from '../version.js';
import { coalesceCommand } from './commands/coalesce.js';
import { deleteCommand } from './commands/delete.js';
import { demoCommand } from './commands/demo.js';
import { fillCommand } from './commands/fill.js';
import { infoCommand } from './commands/info.js';
import { ingestCommand } from './commands/ingest.js';
import { jobsCommand } from './commands/jobs.js';
import { modelsCommand } from './commands/models.js';
import { searchCommand } from './commands/search.js';
import { seriesCommand } from './commands/series.js';
import { serveCommand } from './commands/serve.js';
import { splitCommand } from './commands/split.js';
import { tensorCommand } from './commands/tensor.js';
import { trainCommand } from './commands/train.js';
import { verifyCommand } from './commands/verify.js';
import { applyConfigFile } from './options.js';

function buildProgram(): Command {
  const program = new Command('tilewright')
    .description('Geohash tiles, space-time queries and a small model for each place, from satellite scenes.')
    .version(version)
    .showHelpAfterError('(add --help for the flags)')
    .exitOverride();
  const commands = [
    demoCommand,
    serveCommand,
    ingestCommand,
    searchCommand,
    seriesCommand,
    fillCommand,
    splitCommand,
    coalesceCommand,
    tensorCommand,
    trainCommand,
    modelsCommand,
    jobsCommand,
    infoCommand,
    deleteCommand,
    verifyCommand,
  ];
  for (const make of commands) {
    const command = make().copyInheritedSettings(program);
    program.addCommand(command.hook('preAction', (_, action) => applyConfigFile(action)));
  }
  return program;
}

async function main(): Promise<void> {
  // A reader that has seen enough (`tilewright search | head`) is no error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  process.stderr.on('error', (error: NodeJS.ErrnoException) => {
    // Nobody reads the messages any more: no reason to stop.
    if (error.code !== 'EPIPE') throw error;
  });
  try {
    await buildProgram().parseAsync(process.argv.map(placeWithMinus));
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      return;
    }
    const code = error instanceof TilewrightError ? ` [${error.code}]` : '';
    process.stderr.write(`error: ${messageOf(error)}${code}\n`);
    if (!code && process.env.TILEWRIGHT_DEBUG) console.error(error);
    process.exitCode = isUsage(error) ? 2 : 1;
  }
}

/** A place in the west begins with a minus, and would be taken for a flag: `series -105.1,40.5`. */
function placeWithMinus(argument: string): string {
  return /^-[\d.]+,[-+.\d]+$/.test(argument) ? ` ${argument}` : argument;
}

/** Errors of other parts that are about what was typed. */
const USAGE_CODES = [
  'TW_API_BAD_REQUEST',
  'TW_CLI_PLACE',
  'TW_IMAGERY_BAND',
  'TW_IMAGERY_EXPRESSION',
  'TW_IMAGERY_REGION',
];

/** A parameter that cannot be used, found by the API and not by the parser of flags. */
function isUsage(error: unknown): boolean {
  return (
    error instanceof TilewrightError &&
    (error.code.startsWith('TW_QUERY_') || USAGE_CODES.includes(error.code))
  );
}

await main();
