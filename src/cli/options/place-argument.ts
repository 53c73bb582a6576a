/** The argument <place>, and the output format CSV, of `series` and `spectrum`. */
import { readFileSync } from 'node:fs';
import type { Command, Option } from 'commander';
import { messageOf } from '../../errors.js';
import { parseJson } from '../../json-text.js';
import { badPlaceArgument } from '../errors.js';

export const PLACE_HELP = 'longitude,latitude such as 14.96,47.84; or GeoJSON, as a file or as text';

/** Parses the argument and returns a GeoJSON object. Throws TW_CLI_PLACE. */
export function parsePlace(place: string): object {
  const point = /^\s*([-+.\de]+)\s*,\s*([-+.\de]+)\s*$/i.exec(place);
  if (point) return { type: 'Point', coordinates: [Number(point[1]), Number(point[2])] };
  try {
    const document: unknown = parseJson(
      place.trimStart().startsWith('{') ? place : readFileSync(place, 'utf8'),
    );
    if (typeof document === 'object' && document !== null) return document;
  } catch (error) {
    throw badPlaceArgument.because(error, place, messageOf(error));
  }
  throw badPlaceArgument(place, 'it is not a GeoJSON object');
}

/** Adds CSV to the choices of --format. */
export function allowCsv(command: Command): void {
  const format = command.options.find((option: Option) => option.name() === 'format');
  format?.choices(['text', 'json', 'csv']);
}
