import { Command } from 'commander';
import type { SeriesDocument } from '../../client/index.js';
import { openTarget } from '../connect.js';
import {
  type FilterOptions,
  filterOf,
  flag,
  type TargetOptions,
  withFilter,
  withResources,
  withTarget,
} from '../options/option-groups.js';
import { allowCsv, geometryOf, PLACE } from '../options/place-argument.js';
import { count, notePartial, print, printJson, table } from '../output/print.js';

type SeriesFlags = Omit<TargetOptions, 'format'> &
  FilterOptions & { expression: string; format: 'text' | 'json' | 'csv' };

export function seriesCommand(): Command {
  const command = new Command('series')
    .description('values of an expression at a place, by date')
    .argument('<place>', PLACE)
    .addOption(
      flag('--expression <e>', 'of bands, such as ndvi or "(nir-red)/(nir+red)"').makeOptionMandatory(),
    );
  withTarget(withResources(withFilter(command)));
  allowCsv(command);
  return command.action(async (place: string, flags: SeriesFlags) => {
    const geometry = geometryOf(place);
    const target = await openTarget({ ...flags, format: flags.format === 'json' ? 'json' : 'text' });
    try {
      const { expression } = flags;
      const document = await target.client.series({ geometry, expression, ...filterOf(flags) });
      notePartial(document);
      if (flags.format === 'json') return printJson(document);
      if (flags.format === 'csv') return printCsv(document);
      for (const line of table(rowsOf(document, 4))) print(line);
      print(count(document.series.length, 'date'));
    } finally {
      await target.close();
    }
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

/** RFC 4180; no cell holds a comma. */
function printCsv(document: SeriesDocument): void {
  for (const row of rowsOf(document)) print(row.join(','));
}
