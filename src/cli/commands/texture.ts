/** The commands `texture` and `similar`, which compute the textures of places and find places with a similar one. */
import { Command, InvalidArgumentError } from 'commander';
import { formatDuration } from '../../html/index.js';
import type { Timed } from '../../jobs/index.js';
import type { ClusteredCollection, TextureResults } from '../../training/index.js';
import { plural } from '../../utils/text.js';
import { outcomeOf, runJob, withConnection } from '../connection.js';
import {
  addOptions,
  createOption,
  type JobOptions,
  parseIntegerOption,
  parsePositiveIntegerOption,
  parseTimeOption,
  RAW_SOURCE_HELP,
  type TargetOptions,
  toFilterParams,
  withJobOptions,
  withTarget,
} from '../options.js';
import {
  asciiMap,
  clusterLetter,
  logToStderr,
  print,
  printJson,
  printTable,
  reportJobError,
} from '../output.js';

type TextureFlags = JobOptions & { clusters?: number | 'auto'; near?: string; seed?: number };

export function textureCommand(): Command {
  const command = addOptions(
    new Command('texture').description(
      'compute the texture of each place, and cluster places with similar textures',
    ),
    [
      createOption(
        '--clusters <n>',
        'number of clusters; auto: the number with the best silhouette (default: auto)',
        (value) => (value === 'auto' ? value : numberOfClusters(value)),
      ),
      createOption(
        '--near <time>',
        'use the image nearest to this day or time, among those with 95 % coverage and at most 5 % cloud (default: the newest)',
        parseTimeOption,
      ),
      createOption('--seed <n>', 'the same seed and textures give the same clusters', parseIntegerOption),
    ],
  );
  command.addHelpText('after', RAW_SOURCE_HELP);
  return withJobOptions(command).action(async (flags: TextureFlags) => {
    const { clusters = 'auto', near, seed } = flags;
    const inputs = { filter: toFilterParams(flags), near, seed, ...(clusters !== 'auto' && { clusters }) };
    return withConnection(flags, async ({ client }) => {
      const { job, results, error } = await outcomeOf<TextureResults>(
        runJob('places', (hooks) => client.run('texture', inputs, hooks)),
      );
      if (flags.format === 'json') printJson({ job, ...results });
      else printResults(results);
      if (error) reportJobError(error, flags);
      else if (results.failures > 0) process.exitCode = 3;
    });
  });
}

function numberOfClusters(value: string): number {
  try {
    return parsePositiveIntegerOption(value);
  } catch {
    throw new InvalidArgumentError('It must be an integer of 1 or more, or auto.');
  }
}

function printResults(results: Timed<TextureResults>): void {
  const { textures, unchanged, skipped, failed, failures, seconds } = results;
  for (const collection of results.collections) if (collection.clusters.length > 0) printClusters(collection);
  for (const { tile, code, message } of failed) logToStderr(`failed ${tile}: ${message} [${code}]`);
  for (const [reason, number] of Object.entries(skipped))
    print(`${plural(number, 'place')} skipped: ${reason}`);
  const failing = failures > 0 ? `, ${failures} failed` : '';
  print(
    `${plural(textures, 'texture')} computed, ${unchanged} unchanged${failing}, ${formatDuration(seconds)}`,
  );
}

function printClusters({ collection, grid, places, clusters, curve }: ClusteredCollection): void {
  print(`${collection}: ${plural(places, 'place')} in ${plural(clusters.length, 'cluster')}`);
  print();
  const rows = clusters.map(({ places, middle }, c) => [clusterLetter(c), places.length, middle]);
  printTable([['cluster', 'places', 'most typical'], ...rows]);
  print();
  const cells = clusters.flatMap(({ places }, c) =>
    places.map((geocode) => ({ geocode, mark: clusterLetter(c) })),
  );
  for (const text of asciiMap(grid, cells) ?? ['(too large for a map; --format json lists all places)'])
    print(text);
  print();
  if (curve.length === 0) return;
  printTable([
    ['clusters', 'silhouette', '', 'euclidean', 'manhattan', 'cosine'],
    ...curve.map(({ clusters, euclidean, manhattan, cosine }) => {
      const mean = (euclidean + manhattan + cosine) / 3;
      const bar = '#'.repeat(Math.max(0, Math.round(BAR_WIDTH * mean)));
      return [clusters, mean.toFixed(3), bar, euclidean.toFixed(3), manhattan.toFixed(3), cosine.toFixed(3)];
    }),
  ]);
  print();
}

/** Length of the bar for a silhouette of 1, characters. */
const BAR_WIDTH = 30;

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
