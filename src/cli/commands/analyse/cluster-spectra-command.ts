import type { ClusterResults } from '../../../hyperspectral/index.js';
import { plural } from '../../../utils/plural.js';
import { createOption, parseIntegerOption, parsePositiveIntegerOption } from '../../options/index.js';
import { formatPercent, print, printTable } from '../../output/index.js';
import { analysisCommand, printMaps } from './analysis-command.js';

export const clusterCommand = () =>
  analysisCommand({
    name: 'cluster',
    description: 'maps of the clusters that spectra form (k-means), with the same codes in all tiles',
    options: [
      createOption(
        '--clusters <n>',
        'number of clusters to find, 2 to 50',
        parsePositiveIntegerOption,
      ).makeOptionMandatory(),
      createOption('--seed <n>', 'seed of the initial cluster centres; default 1', parseIntegerOption),
      createOption(
        '--iterations <n>',
        'maximum number of iterations; default 100',
        parsePositiveIntegerOption,
      ),
    ],
    print: printClusters,
  });

function printClusters(results: ClusterResults): void {
  const { clusters, pixels, explained, iterations, converged } = results;
  const rows = clusters.map(({ code, pixels: own, spread }) => [
    `${code}`,
    `${own}`,
    formatPercent(own / pixels),
    spread.toPrecision(4),
  ]);
  printTable([['code', 'pixels', 'share', 'rms distance'], ...rows]);
  const rest = converged ? '' : ' without convergence';
  print(
    `${plural(clusters.length, 'cluster')} explain ${formatPercent(explained)} of the variance of ${plural(pixels, 'pixel')}; ${plural(iterations, 'iteration')}${rest}`,
  );
  printMaps(results);
}
