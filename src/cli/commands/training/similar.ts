import { Command } from 'commander';
import { connect } from '../../connect.js';
import {
  createOption,
  parsePositiveIntegerOption,
  type TargetOptions,
  withTarget,
} from '../../options/option-groups.js';
import { clusterLetter } from '../../output/ascii-map.js';
import { print, printJson, table } from '../../output/print.js';

type SimilarFlags = TargetOptions & { limit?: number; collection?: string };

export function similarCommand(): Command {
  const command = new Command('similar')
    .description('list the places that look most like one; "tilewright texture" computes what they look like')
    .argument('<tile>', 'id of a tile of the place; or, with --collection, its geocode')
    .addOption(
      createOption(
        '-k, --limit <n>',
        'so many places, 1000 at most (default: 10)',
        parsePositiveIntegerOption,
      ),
    )
    .addOption(createOption('--collection <id>', 'of the place, which is named by its geocode then'));
  return withTarget(command).action(async (name: string, flags: SimilarFlags) => {
    const { collection, limit } = flags;
    // Ids of tiles begin with their collection; geocodes have no such sign in them.
    const isTile = name.includes('_');
    if (!isTile && collection === undefined)
      command.error(`error: ${name} is no id of a tile; of a place named by its geocode give --collection`);
    const target = await connect(flags);
    try {
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
      for (const line of table([['place', 'distance', 'cluster', 'date', 'tile'], ...rows])) print(line);
    } finally {
      await target.close();
    }
  });
}
