import { Command } from 'commander';
import type { ClusterResults } from '../../../analysis/index.js';
import { flag, integer, positiveInteger } from '../../options/option-groups.js';
import { count, percent, print, table } from '../../output/print.js';
import { type AnalyseFlags, analysis, printMaps } from './run-analysis.js';

type ClusterFlags = AnalyseFlags & { clusters: number; seed?: number; iterations?: number };

export const clusterCommand = () =>
  analysis<ClusterFlags, ClusterResults>(
    new Command('cluster')
      .description('maps of the clusters that spectra form (k-means), with the same codes in all tiles')
      .addOption(flag('--clusters <n>', 'clusters to find, 2 to 50', positiveInteger).makeOptionMandatory())
      .addOption(flag('--seed <n>', 'of the pixels at which the clusters begin; default 1', integer))
      .addOption(flag('--iterations <n>', 'the most iterations; default 100', positiveInteger)),
    async ({ clusters, seed, iterations }) => ({ clusters, seed, iterations }),
    printClusters,
  );

function printClusters(results: ClusterResults): void {
  const { clusters, pixels, explained, iterations, converged } = results;
  const rows = clusters.map(({ code, pixels: own, spread }) => [
    ...[`${code}`, `${own}`, percent(own / pixels), spread.toPrecision(4)],
  ]);
  for (const line of table([['code', 'pixels', 'share', 'rms distance'], ...rows])) print(line);
  const rest = converged ? '' : ', after which the centres still moved';
  print(
    `${count(clusters.length, 'cluster')} hold ${percent(explained)} of the variance of ${count(pixels, 'pixel')}; ${count(iterations, 'iteration')}${rest}`,
  );
  printMaps(results);
}
