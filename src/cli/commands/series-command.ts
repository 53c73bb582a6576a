import { Command } from 'commander';
import type { SeriesDocument } from '../../client/index.js';
import { plural } from '../../plural.js';
import { withConnection } from '../connection.js';
import {
  allowCsv,
  createOption,
  type FilterOptions,
  PLACE_HELP,
  parsePlace,
  type TargetOptions,
  toFilterParams,
  withJobOptions,
} from '../options/index.js';
import { print, printJson, printTable, warnPartial } from '../output/index.js';

type SeriesFlags = Omit<TargetOptions, 'format'> &
  FilterOptions & { expression: string; format: 'text' | 'json' | 'csv' };

export function seriesCommand(): Command {
  const command = new Command('series')
    .description('values of an expression at a point or polygon, by date')
    .argument('<place>', PLACE_HELP)
    .addOption(
      createOption(
        '--expression <e>',
        'expression of bands, such as ndvi or "(nir-red)/(nir+red)"',
      ).makeOptionMandatory(),
    );
  withJobOptions(command);
  allowCsv(command);
  return command.action(async (place: string, flags: SeriesFlags) => {
    const geometry = parsePlace(place);
    return withConnection(flags, async (target) => {
      const { expression } = flags;
      const document = await target.client.series({ geometry, expression, ...toFilterParams(flags) });
      warnPartial(document);
      if (flags.format === 'json') return printJson(document);
      if (flags.format === 'csv') return printCsv(document);
      printTable(rowsOf(document, 4));
      print(plural(document.series.length, 'date'));
    });
  });
}

const COLUMNS = ['value', 'mean', 'std', 'min', 'max', 'median', 'valid', 'pixels'] as const;

function rowsOf({ series }: SeriesDocument, digits?: number): (string | number)[][] {
  const columns = COLUMNS.filter((column) => series.some((date) => date[column] !== undefined));
  const cell = (value: number | null | undefined, name: string) => {
    if (value === null || value === undefined) return '';
    return digits === undefined || name === 'valid' || name === 'pixels'
      ? String(value)
      : value.toFixed(digits);
  };
  return [
    ['datetime', 'collection', ...columns],
    ...series.map((date) => [
      date.datetime,
      date.collection,
      ...columns.map((name) => cell(date[name], name)),
    ]),
  ];
}

/** Prints CSV (RFC 4180). No field contains a comma. */
function printCsv(document: SeriesDocument): void {
  for (const row of rowsOf(document)) print(row.join(','));
}
