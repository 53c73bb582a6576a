import { Command } from 'commander';
import { withConnection } from '../../cli-connection.js';
import {
  addOptions,
  createOption,
  parsePositiveIntegerOption,
  type TargetOptions,
  withTarget,
} from '../../options/index.js';
import { clusterLetter, printJson, printTable } from '../../output/index.js';

type SimilarFlags = TargetOptions & { limit?: number; collection?: string };

export function similarCommand(): Command {
  const command = addOptions(
    new Command('similar')
      .description('list the most similar places; "tilewright texture" computes their textures first')
      .argument('<tile>', 'id of a tile of the place; with --collection, the geocode of the place'),
    [
      createOption(
        '-k, --limit <n>',
        'number of places to print, 1000 at most (default: 10)',
        parsePositiveIntegerOption,
      ),
      createOption('--collection <id>', 'collection of the place, if its geocode names the place'),
    ],
  );
  return withTarget(command).action(async (name: string, flags: SimilarFlags) => {
    const { collection, limit } = flags;
    // Ids of tiles contain underscores, geocodes do not.
    const isTile = name.includes('_');
    if (!isTile && collection === undefined)
      command.error(`error: ${name} is not the id of a tile; a geocode needs --collection`);
    return withConnection(flags, async (target) => {
      const place = isTile ? { tile: name } : { collection: collection!, geocode: name };
      const document = await target.client.similar(place, limit);
      if (flags.format === 'json') return printJson(document);
      const rows = [document.place, ...document.similar].map(
        ({ geocode, distance, cluster, datetime, tile }) => [
          geocode,
          distance.toFixed(3),
          cluster === undefined ? '-' : clusterLetter(cluster),
          datetime.slice(0, 10),
          tile,
        ],
      );
      printTable([['place', 'distance', 'cluster', 'date', 'tile'], ...rows]);
    });
  });
}
