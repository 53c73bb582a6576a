import { Command } from 'commander';
import type { SpectraDocument, SpectrumEntry } from '../../../client/index.js';
import { plural } from '../../../utils/plural.js';
import { logToStderr, print, printTable } from '../../output/index.js';
import { placeCommand } from '../cluster/place-command.js';

export function spectrumCommand(): Command {
  const command = new Command('spectrum').description(
    'the spectrum of a point or polygon by date, from tiles of imaging spectrometers',
  );
  return placeCommand<SpectraDocument>(command, (client, where) => client.spectra(where), {
    text: printText,
    csv: printCsv,
  });
}

function printText(document: SpectraDocument): void {
  for (const [i, { bands }] of document.sensors.entries()) printSensor(document, i, bands);
  print(plural(document.spectra.length, 'date'));
  noteEmpty(document.spectra);
}

const MAX_NAMED_TILES = 5;

/** Prints why a table or some of its columns are empty. */
function noteEmpty(spectra: readonly SpectrumEntry[]): void {
  if (spectra.length === 0)
    logToStderr(
      'no tile with a spectrum contains the place: "tilewright search --bbox W,S,E,N" lists tiles around it',
    );
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
function printCsv({ sensors, spectra }: SpectraDocument): void {
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
