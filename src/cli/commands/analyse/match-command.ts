import { Command } from 'commander';
import type { MatchInputs, MatchResults } from '../../../hyperspectral/index.js';
import { plural } from '../../../plural.js';
import { addOptions, createOption, parseNumberOption } from '../../options/index.js';
import { print, printTable } from '../../output/index.js';
import { type AnalyseFlags, analysisCommand, loadingText, printMaps } from './analysis-command.js';
import { LIBRARY_FILE_HELP, readLibraryInput } from './library-argument.js';

type MatchFlags = AnalyseFlags & {
  library: string;
  targets?: string;
  method: NonNullable<MatchInputs['method']>;
  threshold?: number;
};

export const matchCommand = () =>
  analysisCommand<MatchFlags, MatchResults>(
    addOptions(
      new Command('match').description(
        'maps of how well each pixel matches the spectra of a library, and of the best match',
      ),
      [
        createOption('--library <file>', LIBRARY_FILE_HELP).makeOptionMandatory(),
        createOption('--targets <names>', 'spectra of the library, separated by commas; default all'),
        createOption(
          '--method <name>',
          'spectral angle, information divergence, matched filter, or coherence',
        )
          .choices(['sam', 'sid', 'mf', 'ace'] satisfies MatchInputs['method'][])
          .default('sam'),
        createOption(
          '--threshold <value>',
          'pixels with a worse match get no class: radians for sam, the value of the other methods',
          parseNumberOption,
        ),
      ],
    ),
    matchInputs,
    printMatch,
  );

async function matchInputs({ library, targets, method, threshold }: MatchFlags): Promise<object> {
  return { library: await readLibraryInput(library, targets), method, threshold };
}

function printMatch(results: MatchResults): void {
  const { method, targets, bands, uncovered, loading } = results;
  printTable([['code', 'target'], ...targets.map(({ code, name }) => [`${code}`, name])]);
  const left = uncovered > 0 ? `, ${uncovered} excluded because the library does not cover them` : '';
  print(`${method} over ${plural(bands.length, 'band')}${left}${loadingText(loading)}`);
  printMaps(results);
}
