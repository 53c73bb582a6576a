import type { UnmixInputs, UnmixResults } from '../../../hyperspectral/index.js';
import { plural } from '../../../utils/plural.js';
import { createOption, parseIntegerOption, parsePositiveIntegerOption } from '../../options/index.js';
import { print, printTable } from '../../output/index.js';
import { LIBRARY_FILE_HELP, readLibraryInput, targetsOption } from './analyse-library-argument.js';
import { type AnalyseFlags, analysisCommand, printMaps } from './analysis-command.js';

type UnmixFlags = AnalyseFlags & {
  endmembers?: number;
  library?: string;
  targets?: string;
  method: NonNullable<UnmixInputs['method']>;
  seed?: number;
};

export const unmixCommand = () =>
  analysisCommand<UnmixResults, UnmixFlags>({
    name: 'unmix',
    description: 'maps of the abundance of each endmember',
    options: [
      createOption(
        '--endmembers <n>',
        'number of endmembers to find in the collection',
        parsePositiveIntegerOption,
      ),
      createOption('--library <file>', `${LIBRARY_FILE_HELP}; used instead of endmembers of the collection`),
      targetsOption(),
      createOption(
        '--method <name>',
        'abundances that are not negative and add up to 1 (fcls), or only not negative (nnls)',
      )
        .choices(['fcls', 'nnls'])
        .default('fcls'),
      createOption('--seed <n>', 'seed of the random directions of the search', parseIntegerOption),
    ],
    inputsOf: async ({ endmembers, library, targets, method, seed }) => ({
      endmembers,
      library: library && (await readLibraryInput(library, targets)),
      method,
      seed,
    }),
    print: printUnmix,
  });

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
