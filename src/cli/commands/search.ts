/** `tilewright search`: finds tiles and prints them as a table. */
import { Command } from 'commander';
import type { ItemCollection } from '../../client/index.js';
import { plural } from '../../utils/text.js';
import { fetchAllPages, withConnection } from '../connection.js';
import { reportNoMatches } from '../no-matches.js';
import {
  addOptions,
  createOption,
  type FilterOptions,
  parsePositiveIntegerOption,
  type TargetOptions,
  toFilterParams,
  withFilterOptions,
  withTarget,
} from '../options.js';
import { print, printJson, printTable, warnPartial } from '../output.js';

type SearchFlags = TargetOptions & FilterOptions & { limit: number; sort?: string };

export function searchCommand(): Command {
  const command = addOptions(new Command('search').description('find tiles'), [
    createOption(
      '--sort <properties>',
      'order of the tiles, for example -eo:cloud_cover,datetime; -datetime means the newest first',
    ).default('-datetime'),
    createOption('--limit <n>', 'print at most this many tiles', parsePositiveIntegerOption).default(20),
  ]);
  return withTarget(withFilterOptions(command)).action(async (flags: SearchFlags) => {
    return withConnection(flags, async (target) => {
      const found = await fetchAllPages(
        (limit, token) =>
          target.client.search({ ...toFilterParams(flags), sortby: flags.sort, limit, token }),
        flags.limit,
      );
      if (found.numberMatched === 0) await reportNoMatches(target.client, toFilterParams(flags));
      warnPartial(found);
      if (flags.format === 'json') return printJson(found);
      printTable([['tile', 'time', 'coverage %', 'cloud %'], ...found.features.map(row)]);
      const { numberMatched, numberReturned } = found;
      print(
        `${plural(numberMatched, 'tile')} found${numberReturned < numberMatched ? `, ${numberReturned} shown` : ''}`,
      );
    });
  });
}

function row({ id, properties }: ItemCollection['features'][number]): string[] {
  const { datetime, pixel_coverage, 'eo:cloud_cover': cloud } = properties as Record<string, string | number>;
  const percent = (value: string | number | undefined) =>
    typeof value === 'number' ? value.toFixed(1) : 'unknown';
  return [id, String(datetime), percent(pixel_coverage).padStart(10), percent(cloud).padStart(7)];
}
