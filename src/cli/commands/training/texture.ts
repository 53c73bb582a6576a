import { Command, InvalidArgumentError } from 'commander';
import type { Timed } from '../../../jobs/index.js';
import type { ClusteredCollection, TextureResults } from '../../../training/index.js';
import { openTarget } from '../../connect.js';
import { orResults } from '../../job-outcome.js';
import {
  type FilterOptions,
  filterOf,
  flag,
  instant,
  integer,
  positiveInteger,
  RAW_UNLESS_ASKED,
  type TargetOptions,
  withFilter,
  withResources,
  withTarget,
} from '../../options/option-groups.js';
import { cellMap, clusterLetter } from '../../output/ascii-map.js';
import { count, duration, noFit, note, print, printJson, progressLine, table } from '../../output/print.js';
import { interruptSignal } from '../../signals.js';

type TextureFlags = TargetOptions &
  FilterOptions & { clusters?: number | 'auto'; near?: string; seed?: number };

export function textureCommand(): Command {
  const command = new Command('texture')
    .description('compute what each place looks like, and show which places look alike')
    .addOption(
      flag(
        '--clusters <n>',
        'put the places into so many clusters; auto: as many as fit best (default: auto)',
        (value) => (value === 'auto' ? value : numberOfClusters(value)),
      ),
    )
    .addOption(
      flag(
        '--near <time>',
        'of the images that hold 95 % of the cell and at most 5 % cloud, look at the one nearest to this day or time (default: the newest)',
        instant,
      ),
    )
    .addOption(flag('--seed <n>', 'same seed, same textures: same clusters', integer));
  command.addHelpText('after', RAW_UNLESS_ASKED);
  return withTarget(withResources(withFilter(command))).action(async (flags: TextureFlags) => {
    const { clusters = 'auto', near, seed } = flags;
    const inputs = { filter: filterOf(flags), near, seed, ...(clusters !== 'auto' && { clusters }) };
    const target = await openTarget(flags);
    const line = progressLine('places');
    try {
      const { job, results, error } = await orResults<TextureResults>(
        target.client.run('texture', inputs, { signal: interruptSignal(), onProgress: line.update }),
      );
      line.end();
      if (flags.format === 'json') printJson({ ...(job && { job }), ...results });
      else printResults(results);
      if (error) {
        note(`error: ${error.message} [${error.code}]`);
        if (error.message.endsWith('no tile fits the filter') && noFit(flags)) note(noFit(flags));
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
    return positiveInteger(value);
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
  for (const { tile, code, message } of failed) note(`failed ${tile}: ${message} [${code}]`);
  for (const [reason, number] of Object.entries(skipped))
    print(`${count(number, 'place')} skipped: ${reason}`);
  const failing = failures > 0 ? `, ${failures} failed` : '';
  print(`${count(textures, 'texture')} computed, ${unchanged} unchanged${failing}, ${duration(seconds)}`);
}

function printClusters({ collection, grid, places, clusters, curve }: ClusteredCollection): void {
  print(`${collection}: ${count(places, 'place')} in ${count(clusters.length, 'cluster')}`);
  print();
  const rows = clusters.map(({ places, middle }, c) => [clusterLetter(c), places.length, middle]);
  for (const text of table([['cluster', 'places', 'most typical'], ...rows])) print(text);
  print();
  const cells = clusters.flatMap(({ places }, c) =>
    places.map((geocode) => ({ geocode, mark: clusterLetter(c) })),
  );
  for (const text of cellMap(grid, cells) ?? ['(too wide for a map here; --format json lists all places)'])
    print(text);
  print();
  if (curve.length === 0) return;
  for (const text of table([
    ['clusters', 'silhouette', '', 'euclidean', 'manhattan', 'cosine'],
    ...curve.map(({ clusters, euclidean, manhattan, cosine }) => {
      const mean = (euclidean + manhattan + cosine) / 3;
      const bar = '#'.repeat(Math.max(0, Math.round(BAR * mean)));
      return [clusters, mean.toFixed(3), bar, ...[euclidean, manhattan, cosine].map((one) => one.toFixed(3))];
    }),
  ]))
    print(text);
  print();
}

/** Characters of a silhouette of 1. */
const BAR = 30;
