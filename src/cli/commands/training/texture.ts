import { Command, InvalidArgumentError } from 'commander';
import { formatDuration } from '../../../html/index.js';
import type { Timed } from '../../../jobs/index.js';
import { plural } from '../../../plural.js';
import type { ClusteredCollection, TextureResults } from '../../../training/index.js';
import { connect } from '../../connect.js';
import { outcomeOf } from '../../job-outcome.js';
import {
  createOption,
  type FilterOptions,
  parseIntegerOption,
  parsePositiveIntegerOption,
  parseTimeOption,
  RAW_SOURCE_HELP,
  type TargetOptions,
  toFilterParams,
  withFilterOptions,
  withResources,
  withTarget,
} from '../../options/option-groups.js';
import { asciiMap, clusterLetter } from '../../output/ascii-map.js';
import { logToStderr, noMatchHint, print, printJson, progressLine, table } from '../../output/print.js';
import { interruptSignal } from '../../signals.js';

type TextureFlags = TargetOptions &
  FilterOptions & { clusters?: number | 'auto'; near?: string; seed?: number };

export function textureCommand(): Command {
  const command = new Command('texture')
    .description('compute what each place looks like, and show which places look alike')
    .addOption(
      createOption(
        '--clusters <n>',
        'put the places into so many clusters; auto: as many as fit best (default: auto)',
        (value) => (value === 'auto' ? value : numberOfClusters(value)),
      ),
    )
    .addOption(
      createOption(
        '--near <time>',
        'of the images that hold 95 % of the cell and at most 5 % cloud, look at the one nearest to this day or time (default: the newest)',
        parseTimeOption,
      ),
    )
    .addOption(createOption('--seed <n>', 'same seed, same textures: same clusters', parseIntegerOption));
  command.addHelpText('after', RAW_SOURCE_HELP);
  return withTarget(withResources(withFilterOptions(command))).action(async (flags: TextureFlags) => {
    const { clusters = 'auto', near, seed } = flags;
    const inputs = { filter: toFilterParams(flags), near, seed, ...(clusters !== 'auto' && { clusters }) };
    const target = await connect(flags);
    const line = progressLine('places');
    try {
      const { job, results, error } = await outcomeOf<TextureResults>(
        target.client.run('texture', inputs, { signal: interruptSignal(), onProgress: line.update }),
      );
      line.end();
      if (flags.format === 'json') printJson({ ...(job && { job }), ...results });
      else printResults(results);
      if (error) {
        logToStderr(`error: ${error.message} [${error.code}]`);
        if (error.message.endsWith('no tile fits the filter') && noMatchHint(flags))
          logToStderr(noMatchHint(flags));
        process.exitCode = 1;
      } else if (results.failures > 0) process.exitCode = 3;
    } finally {
      line.end();
      await target.close();
    }
  });
}

function numberOfClusters(value: string): number {
  try {
    return parsePositiveIntegerOption(value);
  } catch {
    throw new InvalidArgumentError('It must be a whole number of 1 or more, or auto.');
  }
}

function printResults({
  textures,
  unchanged,
  skipped,
  failed,
  failures,
  collections,
  seconds,
}: Timed<TextureResults>): void {
  for (const collection of collections) if (collection.clusters.length > 0) printClusters(collection);
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
  for (const text of table([['cluster', 'places', 'most typical'], ...rows])) print(text);
  print();
  const cells = clusters.flatMap(({ places }, c) =>
    places.map((geocode) => ({ geocode, mark: clusterLetter(c) })),
  );
  for (const text of asciiMap(grid, cells) ?? ['(too wide for a map here; --format json lists all places)'])
    print(text);
  print();
  if (curve.length === 0) return;
  for (const text of table([
    ['clusters', 'silhouette', '', 'euclidean', 'manhattan', 'cosine'],
    ...curve.map(({ clusters, euclidean, manhattan, cosine }) => {
      const mean = (euclidean + manhattan + cosine) / 3;
      const bar = '#'.repeat(Math.max(0, Math.round(BAR_WIDTH * mean)));
      return [clusters, mean.toFixed(3), bar, ...[euclidean, manhattan, cosine].map((one) => one.toFixed(3))];
    }),
  ]))
    print(text);
  print();
}

/** Characters of a silhouette of 1. */
const BAR_WIDTH = 30;
