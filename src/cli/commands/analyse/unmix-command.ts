import { Command } from 'commander';
import type { UnmixInputs, UnmixResults } from '../../../hyperspectral/index.js';
import { plural } from '../../../plural.js';
import {
  addOptions,
  createOption,
  parseIntegerOption,
  parsePositiveIntegerOption,
} from '../../options/index.js';
import { print, printTable } from '../../output/index.js';
import { type AnalyseFlags, analysisCommand, printMaps } from './analysis-command.js';
import { LIBRARY_FILE_HELP, readLibraryInput } from './library-argument.js';

type UnmixFlags = AnalyseFlags & {
  endmembers?: number;
  library?: string;
  targets?: string;
  method: NonNullable<UnmixInputs['method']>;
  seed?: number;
};

export const unmixCommand = () =>
  analysisCommand<UnmixFlags, UnmixResults>(
    addOptions(new Command('unmix').description('maps of the abundance of each endmember'), [
      createOption(
        '--endmembers <n>',
        'number of endmembers to find in the collection',
        parsePositiveIntegerOption,
      ),
      createOption('--library <file>', `${LIBRARY_FILE_HELP}; used instead of endmembers of the collection`),
      createOption('--targets <names>', 'spectra of the library, separated by commas; default all'),
      createOption(
        '--method <name>',
        'abundances that are not negative and add up to 1 (fcls), or only not negative (nnls)',
      )
        .choices(['fcls', 'nnls'])
        .default('fcls'),
      createOption('--seed <n>', 'seed of the random directions of the search', parseIntegerOption),
    ]),
    unmixInputs,
    printUnmix,
  );

async function unmixInputs({ endmembers, library, targets, method, seed }: UnmixFlags): Promise<object> {
  return { endmembers, library: library && (await readLibraryInput(library, targets)), method, seed };
}

function printUnmix(results: UnmixResults): void {
  const { method, endmembers, bands } = results;
  const rows = endmembers.map(({ name, tile = '', position }, i) => [
    `${i + 1}`,
    name,
    position?.join(',') ?? '',
    tile,
  ]);
  printTable([['band', 'endmember', 'lon,lat', 'tile'], ...rows]);
  print(`${method} over ${plural(bands.length, 'band')}`);
  printMaps(results);
}
