import { readFileSync } from 'node:fs';
import { Command, type Option } from 'commander';
import type { SeriesDocument } from '../../client/index.js';
import { messageOf } from '../../errors.js';
import { badPlace } from '../errors.js';
import {
  type FilterOptions,
  filterOf,
  flag,
  type TargetOptions,
  withFilter,
  withResources,
  withTarget,
} from '../options.js';
import { count, notePartial, print, printJson, table } from '../output.js';
import { openTarget } from '../target.js';

type SeriesFlags = Omit<TargetOptions, 'format'> &
  FilterOptions & { expression: string; format: 'text' | 'json' | 'csv' };

export function seriesCommand(): Command {
  const command = new Command('series')
    .description('values of an expression at a place, by date')
    .argument('<place>', 'longitude,latitude such as 14.96,47.84; or GeoJSON: a file, or the text itself')
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

/** A series is a table, so it can be printed as one too. */
function allowCsv(command: Command): void {
  const format = command.options.find((option: Option) => option.name() === 'format');
  format?.choices(['text', 'json', 'csv']);
}

/** Throws TW_CLI_PLACE. */
function geometryOf(place: string): object {
  const point = /^\s*([-+.\de]+)\s*,\s*([-+.\de]+)\s*$/i.exec(place);
  if (point) return { type: 'Point', coordinates: [Number(point[1]), Number(point[2])] };
  try {
    const document: unknown = JSON.parse(
      place.trimStart().startsWith('{') ? place : readFileSync(place, 'utf8'),
    );
    if (typeof document === 'object' && document !== null) return document;
  } catch (error) {
    throw badPlace.because(error, place, messageOf(error));
  }
  throw badPlace(place, 'it is no GeoJSON object');
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
