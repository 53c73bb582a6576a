/** The commands `series` and `spectrum`, which report values at a place by date. */
import { Command } from 'commander';
import type {
  Client,
  PartialDocument,
  SeriesDocument,
  SpectraDocument,
  SpectrumEntry,
} from '../../client/index.js';
import { messageOf } from '../../errors.js';
import type { FilterParams } from '../../query/index.js';
import { plural } from '../../utils/text.js';
import { withConnection } from '../connection.js';
import { badPlaceArgument } from '../errors.js';
import { reportNoMatches } from '../no-matches.js';
import {
  createOption,
  type JobOptions,
  parseJsonArgument,
  toFilterParams,
  withJobOptions,
} from '../options.js';
import { logToStderr, print, printJson, printTable, warnPartial } from '../output.js';

type PlaceFlags = Omit<JobOptions, 'format'> & { format: 'text' | 'json' | 'csv' };

interface PlaceOutput<Document> {
  text(document: Document): void;
  csv(document: Document): void;
}

/** Adds the argument <place>, the options and the action to a command. */
function placeCommand<Document extends PartialDocument, Flags = object>(
  command: Command,
  find: (client: Client, where: FilterParams & { geometry: object }, flags: Flags) => Promise<Document>,
  output: PlaceOutput<Document>,
  countDates: (document: Document) => number,
): Command {
  command.argument('<place>', 'longitude,latitude such as 14.96,47.84; or GeoJSON, as a file or as text');
  const format = withJobOptions(command).options.find((option) => option.name() === 'format');
  format?.choices(['text', 'json', 'csv']);
  return command.action(async (place: string, flags: PlaceFlags & Flags) => {
    const geometry = parsePlace(place);
    return withConnection(flags, async ({ client }) => {
      const filter = toFilterParams(flags);
      const document = await find(client, { geometry, ...filter }, flags);
      warnPartial(document);
      if (flags.format === 'json') printJson(document);
      else output[flags.format](document);
      if (countDates(document) > 0) return;
      process.exitCode = 1;
      await reportNoMatches(client, filter, geometry);
    });
  });
}

/** Parses the argument and returns a GeoJSON object. Throws TW_CLI_PLACE. */
function parsePlace(place: string): object {
  const point = /^\s*([-+.\de]+)\s*,\s*([-+.\de]+)\s*$/i.exec(place);
  if (point) return { type: 'Point', coordinates: [Number(point[1]), Number(point[2])] };
  try {
    const document = parseJsonArgument(place);
    if (typeof document === 'object' && document !== null) return document;
  } catch (error) {
    throw badPlaceArgument.because(error, place, messageOf(error));
  }
  throw badPlaceArgument(place, 'it is not a GeoJSON object');
}

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
    { text: printSeries, csv: printSeriesCsv },
    ({ series }) => series.length,
  );
}

function printSeries(document: SeriesDocument): void {
  printTable(rowsOf(document, 4));
  print(plural(document.series.length, 'date'));
}

const SERIES_COLUMNS = ['value', 'mean', 'std', 'min', 'max', 'median', 'valid', 'pixels'] as const;

function rowsOf({ series }: SeriesDocument, digits?: number): (string | number)[][] {
  const columns = SERIES_COLUMNS.filter((column) => series.some((date) => date[column] !== undefined));
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
function printSeriesCsv(document: SeriesDocument): void {
  for (const row of rowsOf(document)) print(row.join(','));
}

export function spectrumCommand(): Command {
  const command = new Command('spectrum').description(
    'the spectrum of a point or polygon by date, from tiles of imaging spectrometers',
  );
  return placeCommand<SpectraDocument>(
    command,
    (client, where) => client.spectra(where),
    { text: printSpectra, csv: printSpectraCsv },
    ({ spectra }) => spectra.length,
  );
}

function printSpectra(document: SpectraDocument): void {
  for (const [i, { bands }] of document.sensors.entries()) printSensor(document, i, bands);
  print(plural(document.spectra.length, 'date'));
  noteEmpty(document.spectra);
}

const MAX_NAMED_TILES = 5;

/** Prints why some columns of a table are empty. */
function noteEmpty(spectra: readonly SpectrumEntry[]): void {
  const empty = spectra.filter((one) => valuesOf(one).every((value) => value === null));
  const days = [...new Set(empty.map(({ datetime }) => datetime.slice(0, 10)))];
  const more =
    days.length > MAX_NAMED_TILES ? ` and ${plural(days.length - MAX_NAMED_TILES, 'other date')}` : '';
  if (days.length > 0) logToStderr(`no data there on ${days.slice(0, MAX_NAMED_TILES).join(', ')}${more}`);
}

const valuesOf = ({ values, mean = [] }: SpectrumEntry) => values ?? mean;

/** Prints a row for each band and a column for each date. */
function printSensor(
  document: SpectraDocument,
  sensor: number,
  bands: SpectraDocument['sensors'][0]['bands'],
) {
  const dates = document.spectra.filter((one) => one.sensor === sensor);
  const cell = (value: number | null | undefined) =>
    value === null || value === undefined ? '' : value.toFixed(4);
  const rows = bands.map(({ name, wavelength, bad_band }, band) => [
    `${name}${bad_band ? ' (bad)' : ''}`,
    wavelength.toFixed(1),
    ...dates.map((date) => cell(valuesOf(date)[band])),
  ]);
  const headings = dates.map(({ datetime, collection }) => `${collection} ${datetime.slice(0, 10)}`);
  printTable([['band', 'nm', ...headings], ...rows]);
}

/** Prints CSV (RFC 4180) with a line for each date and band. No field contains a comma. */
function printSpectraCsv({ sensors, spectra }: SpectraDocument): void {
  noteEmpty(spectra);
  const isPoint = spectra.every(({ values }) => values !== undefined);
  const columns = isPoint ? 'value' : 'mean,std';
  print(`datetime,collection,band,wavelength_nm,fwhm_nm,bad_band,${columns}`);
  for (const spectrum of spectra)
    for (const [i, band] of sensors[spectrum.sensor]!.bands.entries()) {
      const { name, wavelength, fwhm = '', bad_band = false } = band;
      const numbers = [valuesOf(spectrum)[i] ?? '', ...(isPoint ? [] : [spectrum.std?.[i] ?? ''])];
      print([spectrum.datetime, spectrum.collection, name, wavelength, fwhm, bad_band, ...numbers].join());
    }
}
