import { Command } from 'commander';
import type { SeriesDocument } from '../../../client/index.js';
import { plural } from '../../../utils/plural.js';
import { createOption } from '../../options/index.js';
import { print, printTable } from '../../output/index.js';
import { placeCommand } from '../cluster/place-command.js';

export function seriesCommand(): Command {
  const command = new Command('series')
    .description('values of an expression at a point or polygon, by date')
    .addOption(
      createOption(
        '--expression <e>',
        'expression of bands, such as ndvi or "(nir-red)/(nir+red)"',
      ).makeOptionMandatory(),
    );
  return placeCommand<SeriesDocument, { expression: string }>(
    command,
    (client, where, { expression }) => client.series({ ...where, expression }),
    { text: printText, csv: printCsv },
  );
}

function printText(document: SeriesDocument): void {
  printTable(rowsOf(document, 4));
  print(plural(document.series.length, 'date'));
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
