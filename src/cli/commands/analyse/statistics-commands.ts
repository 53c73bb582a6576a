import { Command } from 'commander';
import type { AnomalyResults, ComponentsResults, StatsResults } from '../../../hyperspectral/index.js';
import { plural } from '../../../plural.js';
import { addOptions, createOption, parsePositiveIntegerOption } from '../../options/index.js';
import { formatPercent, print, printTable } from '../../output/index.js';
import { type AnalyseFlags, analysisCommand, loadingText, printMaps } from './analysis-command.js';

type ComponentsFlags = AnalyseFlags & { components?: number };
type AnomalyFlags = AnalyseFlags & { windowPixels?: number[]; components?: number };

export const statsCommand = () =>
  analysisCommand(
    new Command('stats').description(
      'mean, standard deviation, covariance and correlation of the bands of a collection',
    ),
    async () => ({}),
    printStats,
  );

export const pcaCommand = () =>
  analysisCommand<ComponentsFlags, ComponentsResults>(
    withComponents(new Command('pca').description('maps of principal components')),
    async ({ components }) => ({ components }),
    printComponents,
  );

export const mnfCommand = () =>
  analysisCommand<ComponentsFlags, ComponentsResults>(
    withComponents(
      new Command('mnf').description(
        'maps of minimum noise fractions: components by their signal-to-noise ratios',
      ),
    ),
    async ({ components }) => ({ components }),
    printComponents,
  );

export const anomalyCommand = () =>
  analysisCommand<AnomalyFlags, AnomalyResults>(
    addOptions(
      new Command('anomaly').description(
        'maps of the distance of each spectrum from the mean of the collection, or of the pixels around it (RX)',
      ),
      [
        createOption(
          '--window-pixels <outer[,inner]>',
          'compare each pixel with the window around it, without the inner window; odd widths in pixels, such as 21,5',
          (text: string) => text.split(',').map(parsePositiveIntegerOption),
        ),
        createOption(
          '--components <n>',
          'with --window-pixels: principal components in which pixels are compared; default 10',
          parsePositiveIntegerOption,
        ),
      ],
    ),
    async ({ windowPixels: window, components }) => ({ window, components }),
    printAnomaly,
  );

function withComponents(command: Command): Command {
  return command.addOption(
    createOption('--components <n>', 'number of components to map; default 10', parsePositiveIntegerOption),
  );
}

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
