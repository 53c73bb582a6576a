/** Commands that derive tiles from tiles: the process has the name of the command, and the options of the command as inputs. */

import { Command, type Option } from 'commander';
import type { DeriveResults } from '../../derive/index.js';
import { formatDuration } from '../../html/index.js';
import type { Timed } from '../../jobs/index.js';
import type { TileSource } from '../../storage/index.js';
import { plural } from '../../utils/text.js';
import { outcomeOf, runJob, withConnection } from '../connection.js';
import {
  addOptions,
  createOption,
  type FilterOptions,
  type JobOptions,
  optionValues,
  parseNumberOption,
  parsePositiveIntegerOption,
  type TargetOptions,
  toFilterParams,
  withJobOptions,
} from '../options.js';
import { logToStderr, noMatchHint, print, printJson, printTileWarnings } from '../output.js';

/** Runs a process and prints the number of tiles, or why there was nothing to do. Sets the exit code 3 if some tiles failed. */
export async function runDerive<Results extends DeriveResults = DeriveResults>(
  process_: string,
  /** Source of the derived tiles. */
  source: TileSource,
  inputs: object,
  flags: TargetOptions & FilterOptions,
): Promise<Timed<Results>> {
  const hint = `the collection has them and the raw tiles: "search --source ${source}" finds only them, "--source raw" excludes them`;
  return withConnection(flags, async ({ client }) => {
    const { job, results, error } = await outcomeOf<Results>(
      runJob('tiles', (hooks) => client.run(process_, inputs, hooks)),
    );
    if (flags.format === 'json') printJson({ job, ...results });
    else printResults(results);
    printTileWarnings(results);
    if (results.tiles > 0) logToStderr(hint);
    const { tiles, unchanged, removed = 0, failures } = results;
    if (error) {
      logToStderr(`error: ${error.message} [${error.code}]`);
      process.exitCode = 1;
    } else if (failures > 0) process.exitCode = 3;
    else if (tiles + unchanged + removed === 0) logToStderr(`nothing to do: ${skipReasons(results, flags)}`);
    return results;
  });
}

/** The reasons why no tile was derived. */
function skipReasons(results: DeriveResults, flags: FilterOptions): string {
  const reasons = Object.entries(results.skipped).map(
    ([reason, number]) => `${skippedTiles(results, reason, number)}, ${reason}`,
  );
  return reasons.length > 0
    ? reasons.join('; ')
    : `no tile matches the filter. ${noMatchHint(flags)}`.trimEnd();
}

/** The number of tiles, with the id of one if it is known. */
function skippedTiles({ examples = {} }: DeriveResults, reason: string, number: number): string {
  const example = examples[reason];
  return `${plural(number, 'tile')}${example === undefined ? '' : ` (such as ${example})`}`;
}

function printResults(results: Timed<DeriveResults>): void {
  const { tiles, unchanged, removed = 0, skipped, failed, failures, seconds, rims } = results;
  for (const { tile, code, message } of failed) logToStderr(`failed ${tile}: ${message} [${code}]`);
  // If nothing was derived, `skipReasons` prints the reasons.
  for (const [reason, number] of tiles + unchanged + removed + failures > 0 ? Object.entries(skipped) : [])
    print(`${skippedTiles(results, reason, number)} skipped: ${reason}`);
  const removing = removed > 0 ? `, ${removed} removed` : '';
  const failing = failures > 0 ? `, ${failures} failed` : '';
  print(
    `${plural(tiles, 'tile')} made, ${unchanged} unchanged${removing}${failing}, ${formatDuration(seconds)}`,
  );
  if (rims && rims.replaced > 0) {
    const share = Number(((100 * rims.replaced) / rims.clear).toPrecision(2));
    print(
      `${share} % of the clear pixels were replaced too, because they are close to cloud or shadow (--dilate)`,
    );
  }
}

function deriveCommand(name: string, description: string, source: TileSource, options: Option[]): Command {
  const command = addOptions(new Command(name).description(description), options);
  return withJobOptions(command).action(async (flags: JobOptions) => {
    await runDerive(name, source, { filter: toFilterParams(flags), ...optionValues(options, flags) }, flags);
  });
}

export const dilateOption = () =>
  createOption(
    '--dilate <metres>',
    'also replace clear pixels up to this distance from cloud and shadow, at least one pixel; 0 for none, default 90',
    parseNumberOption,
  );

export const coalesceCommand = () =>
  deriveCommand(
    'coalesce',
    'resample tiles to the cells and times of another collection; --bbox, --geocode and --datetime select tiles of that collection',
    'coalesced',
    [
      createOption('--to <id>', 'the collection whose cells and times are used').makeOptionMandatory(),
      createOption(
        '--window <days>',
        'if no scene overlaps a time, use the nearest scene within this many days; default 16',
        parseNumberOption,
      ),
    ],
  );

export const fillCommand = () =>
  deriveCommand(
    'fill',
    'fill pixels without data, with cloud or with shadow from dates near in time',
    'filled',
    [
      createOption(
        '--window <days>',
        'use pixels of dates up to this many days away; default 16',
        parseNumberOption,
      ),
      createOption(
        '--to-coverage <percent>',
        'fill until this percentage of the cell has data; default 100',
        parseNumberOption,
      ),
      createOption(
        '--to-cloud <percent>',
        'fill until the cloud cover is at most this percentage; default 0',
        parseNumberOption,
      ),
      dilateOption(),
    ],
  );

export const splitCommand = () =>
  deriveCommand('split', 'split tiles into tiles of finer cells', 'split', [
    createOption(
      '--precision <n>',
      'length of the geocodes of the new cells',
      parsePositiveIntegerOption,
    ).makeOptionMandatory(),
  ]);
