#!/usr/bin/env node
/**
 * The `tilewright` command: commands, connection, signals and exit codes. A command always uses the API, over HTTP or in process.
 * Exit codes: 0 done, 1 failed, 2 wrong usage, 3 some inputs failed. A command that a signal interrupts, except `serve`, ends by that
 * signal.
 */
import { Command, CommanderError } from 'commander';
import { messageOf, TilewrightError } from '../errors.js';
import { describeSystemError } from '../utils/system-errors.js';
import { version } from '../version.js';
import { allCommands, COMMANDS } from './commands/registry.js';
import { internalError, systemFailed } from './errors.js';
import {
  enableCompileCache,
  exitBySignal,
  handleStdioErrors,
  printWarnings,
  requireFileDescriptors,
} from './process.js';

/** The program with the command that `argv` names. Without a known command, it has all commands, for help and suggestions. */
async function buildProgram(argv: string[]): Promise<Command> {
  // A static import would open more files than a low limit of file descriptors allows.
  const { applyConfigFile, applyEnvironment } = await import('./config-file.js');
  const program = new Command('tilewright')
    .description('Geohash tiles, space-time queries and a small model for each place, from satellite scenes.')
    .version(version)
    // This lets commands have their own --version.
    .enablePositionalOptions()
    .configureOutput({ outputError: (text, write) => write(withoutJargon(text)) })
    .showHelpAfterError('(add --help for the flags)')
    .exitOverride();
  const asked = ['-V', '--version'].includes(argv[0]) ? [] : Object.values(COMMANDS);
  const named = Object.hasOwn(COMMANDS, argv[0]) ? [COMMANDS[argv[0]]] : asked;
  for (const make of named) {
    const command = inherit(await make(), program);
    command.hook('preAction', (_, action) => applyEnvironment(action));
    program.addCommand(command.hook('preAction', (_, action) => applyConfigFile(action, allCommands)));
  }
  return program;
}

/** Rewrites the parser's message of a wrong argument. */
const withoutJargon = (text: string): string =>
  text.replace(
    /command-argument value ('.*') is invalid for argument '(.*?)'\./s,
    'the value $1 of <$2> is invalid.',
  );

/** Copies settings to a command and its subcommands, so that wrong usage exits with the same code everywhere. */
function inherit(command: Command, from: Command): Command {
  command.copyInheritedSettings(from);
  for (const below of command.commands) inherit(below, command);
  return command;
}

async function main(): Promise<void> {
  handleStdioErrors();
  printWarnings();
  try {
    enableCompileCache();
    requireFileDescriptors();
    const argv = process.argv.slice(2).map(protectNegativeCoordinate);
    await (await buildProgram(argv)).parseAsync(argv, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      return;
    }
    const known = asKnownError(error);
    process.stderr.write(`error: ${known.message} [${known.code}]\n`);
    if (known !== error && process.env.TILEWRIGHT_DEBUG) console.error(error);
    process.exitCode = isUsage(known) ? 2 : 1;
  }
}

function asKnownError(error: unknown): TilewrightError {
  if (error instanceof TilewrightError) return error;
  const isOfSystem = error instanceof Error && describeSystemError(error) !== undefined;
  return (isOfSystem ? systemFailed : internalError).because(error, messageOf(error));
}

/** Adds a space before a coordinate with a minus sign, which would be parsed as a flag: `series -105.1,40.5`. */
function protectNegativeCoordinate(argument: string): string {
  return /^-[\d.]+,[-+.\d]+$/.test(argument) ? ` ${argument}` : argument;
}

/** Errors of other parts that are caused by arguments. */
const USAGE_CODES = [
  'TW_ANALYSIS_INDEX',
  'TW_ANALYSIS_SMOOTHING',
  'TW_ANALYSIS_NET_OPTION',
  'TW_ANALYSIS_WINDOW',
  'TW_API_BAD_REQUEST',
  'TW_API_OPEN_BIND',
  'TW_API_OPEN_PUBLIC_URL',
  'TW_API_PUBLIC_URL',
  'TW_API_TRUST_PROXY',
  'TW_CLI_CONFIG',
  'TW_CLI_LABELS',
  'TW_CLI_NODE',
  'TW_CLI_PLACE',
  'TW_CLI_TARGETS',
  'TW_IMAGERY_BAND',
  'TW_IMAGERY_EXPRESSION',
  'TW_IMAGERY_REGION',
  'TW_INGEST_BAD_OPTION',
  'TW_RASTER_UNKNOWN_CRS',
  'TW_SUBSCRIPTION_EVERY',
];

/** Errors of queries that are not caused by arguments. Errors of jobs have no status that would show it. */
const PARTIAL_FAILURE_CODES = ['TW_QUERY_UNANSWERED'];

/** True for an invalid argument that the API detected, not the parser of flags. */
function isUsage(error: TilewrightError): boolean {
  return (
    !PARTIAL_FAILURE_CODES.includes(error.code) &&
    (error.code.startsWith('TW_QUERY_') || USAGE_CODES.includes(error.code))
  );
}

await main();
await exitBySignal();
