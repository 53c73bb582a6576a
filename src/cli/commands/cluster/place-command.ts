/** The shared part of the commands `series` and `spectrum`, which report values at a place by date. */
import type { Command } from 'commander';
import type { Client, PartialDocument } from '../../../client/index.js';
import { messageOf } from '../../../errors.js';
import type { FilterParams } from '../../../query/index.js';
import { withConnection } from '../../cli-connection.js';
import { badPlaceArgument } from '../../errors.js';
import { type JobOptions, parseJsonArgument, toFilterParams, withJobOptions } from '../../options/index.js';
import { printJson, warnPartial } from '../../output/index.js';

type PlaceFlags = Omit<JobOptions, 'format'> & { format: 'text' | 'json' | 'csv' };

interface PlaceOutput<Document> {
  text(document: Document): void;
  csv(document: Document): void;
}

/** Adds the argument <place>, the options and the action to a command. */
export function placeCommand<Document extends PartialDocument, Flags = object>(
  command: Command,
  find: (client: Client, where: FilterParams & { geometry: object }, flags: Flags) => Promise<Document>,
  output: PlaceOutput<Document>,
): Command {
  command.argument('<place>', 'longitude,latitude such as 14.96,47.84; or GeoJSON, as a file or as text');
  const format = withJobOptions(command).options.find((option) => option.name() === 'format');
  format?.choices(['text', 'json', 'csv']);
  return command.action(async (place: string, flags: PlaceFlags & Flags) => {
    const geometry = parsePlace(place);
    return withConnection(flags, async ({ client }) => {
      const document = await find(client, { geometry, ...toFilterParams(flags) }, flags);
      warnPartial(document);
      if (flags.format === 'json') printJson(document);
      else output[flags.format](document);
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
