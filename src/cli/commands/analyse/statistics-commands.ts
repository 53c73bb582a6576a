import type { AnomalyResults, ComponentsResults, StatsResults } from '../../../hyperspectral/index.js';
import { plural } from '../../../utils/plural.js';
import { createOption, parsePositiveIntegerOption } from '../../options/index.js';
import { formatPercent, print, printTable } from '../../output/index.js';
import { type AnalyseFlags, analysisCommand, loadingText, printMaps } from './analysis-command.js';

type AnomalyFlags = AnalyseFlags & { windowPixels?: number[]; components?: number };

export const statsCommand = () =>
  analysisCommand({
    name: 'stats',
    description: 'mean, standard deviation, covariance and correlation of the bands of a collection',
    print: printStats,
  });

export const pcaCommand = () =>
  analysisCommand({
    name: 'pca',
    description: 'maps of principal components',
    options: [componentsOption()],
    print: printComponents,
  });

export const mnfCommand = () =>
  analysisCommand({
    name: 'mnf',
    description: 'maps of minimum noise fractions: components by their signal-to-noise ratios',
    options: [componentsOption()],
    print: printComponents,
  });

export const anomalyCommand = () =>
  analysisCommand<AnomalyResults, AnomalyFlags>({
    name: 'anomaly',
    description:
      'maps of the distance of each spectrum from the mean of the collection, or of the pixels around it (RX)',
    options: [
      createOption(
        '--window-pixels <outer[,inner]>',
        'widths, in pixels, of the window around each pixel and of the inner window that is left out of it; odd numbers, such as 21,5',
        (text: string) => text.split(',').map(parsePositiveIntegerOption),
      ),
      createOption(
        '--components <n>',
        'with --window-pixels: number of principal components in which pixels are compared; default 10',
        parsePositiveIntegerOption,
      ),
    ],
    inputsOf: async ({ windowPixels: window, components }) => ({ window, components }),
    print: printAnomaly,
  });

const componentsOption = () =>
  createOption('--components <n>', 'number of components to map; default 10', parsePositiveIntegerOption);

function printStats({ bands, pixels, tiles }: StatsResults): void {
  const rows = bands.map(({ name, wavelength, mean, std }) => [
    name,
    wavelength.toFixed(1),
    mean.toPrecision(5),
    std.toPrecision(4),
  ]);
  printTable([['band', 'nm', 'mean', 'std'], ...rows]);
  print(`${plural(pixels, 'pixel')} of ${plural(tiles, 'tile')}`);
}

const MAX_LISTED = 10;

function printComponents(results: ComponentsResults): void {
  const { eigenvalues, shares, pixels } = results;
  const rows = eigenvalues
    .slice(0, MAX_LISTED)
    .map((value, i) => [
      `${i + 1}`,
      value.toPrecision(5),
      ...(shares ? [`${(100 * shares[i]!).toFixed(2)} %`] : []),
    ]);
  const headings = shares ? ['component', 'variance', 'share'] : ['component', 'signal and noise to noise'];
  printTable([headings, ...rows]);
  print(`${plural(pixels, 'pixel')}`);
  printMaps(results);
}

function printAnomaly(results: AnomalyResults): void {
  const { pixels, bands, loading, window, components, held = 1 } = results;
  print(`${plural(pixels, 'pixel')}, ${plural(bands.length, 'band')}${loadingText(loading)}`);
  if (window)
    print(
      `background between windows of ${window[1]} and ${window[0]} pixels, in ${plural(components!, 'component')} that explain ${formatPercent(held)} of the variance`,
    );
  printMaps(results);
}
