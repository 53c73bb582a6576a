import type { MatchInputs, MatchResults } from '../../../hyperspectral/index.js';
import { plural } from '../../../utils/plural.js';
import { createOption, parseNumberOption } from '../../options/index.js';
import { print, printTable } from '../../output/index.js';
import { LIBRARY_FILE_HELP, readLibraryInput, targetsOption } from './analyse-library-argument.js';
import { type AnalyseFlags, analysisCommand, loadingText, printMaps } from './analysis-command.js';

type MatchFlags = AnalyseFlags & {
  library: string;
  targets?: string;
  method: NonNullable<MatchInputs['method']>;
  threshold?: number;
};

export const matchCommand = () =>
  analysisCommand<MatchResults, MatchFlags>({
    name: 'match',
    description: 'maps of how well each pixel matches the spectra of a library, and of the best match',
    options: [
      createOption('--library <file>', LIBRARY_FILE_HELP).makeOptionMandatory(),
      targetsOption(),
      createOption('--method <name>', 'spectral angle, information divergence, matched filter, or coherence')
        .choices(['sam', 'sid', 'mf', 'ace'] satisfies MatchInputs['method'][])
        .default('sam'),
      createOption(
        '--threshold <value>',
        'limit of the match; pixels with a worse match get no class. For sam it is an angle in radians, for the other methods a value of the map',
        parseNumberOption,
      ),
    ],
    inputsOf: async ({ library, targets, method, threshold }) => ({
      library: await readLibraryInput(library, targets),
      method,
      threshold,
    }),
    print: printMatch,
  });

function printMatch(results: MatchResults): void {
  const { method, targets, bands, uncovered, loading } = results;
  printTable([['code', 'target'], ...targets.map(({ code, name }) => [`${code}`, name])]);
  const left = uncovered > 0 ? `, ${uncovered} excluded because the library does not cover them` : '';
  print(`${method} over ${plural(bands.length, 'band')}${left}${loadingText(loading)}`);
  printMaps(results);
}
