import { Command } from 'commander';
import type { MatchInputs, MatchResults } from '../../../analysis/index.js';
import { flag, number } from '../../options/option-groups.js';
import { count, print, table } from '../../output/print.js';
import { type AnalyseFlags, analysis, loadingText, printMaps } from './run-analysis.js';
import { LIBRARY_FILE, libraryOf } from './spectral-library.js';

type MatchFlags = AnalyseFlags & {
  library: string;
  targets?: string;
  method: NonNullable<MatchInputs['method']>;
  threshold?: number;
};

export const matchCommand = () =>
  analysis<MatchFlags, MatchResults>(
    new Command('match')
      .description('maps of how well each pixel matches the spectra of a library, and of the best one')
      .addOption(flag('--library <file>', LIBRARY_FILE).makeOptionMandatory())
      .addOption(flag('--targets <names>', 'spectra of the library, with commas; default all'))
      .addOption(
        flag('--method <name>', 'spectral angle, information divergence, matched filter, or coherence')
          .choices(['sam', 'sid', 'mf', 'ace'] satisfies MatchInputs['method'][])
          .default('sam'),
      )
      .addOption(
        flag(
          '--threshold <value>',
          'pixels that are no better have no class: radians of sam, the value of the others',
          number,
        ),
      ),
    matchInputs,
    printMatch,
  );

async function matchInputs({ library, targets, method, threshold }: MatchFlags): Promise<object> {
  return { library: await libraryOf(library, targets), method, threshold };
}

function printMatch(results: MatchResults): void {
  const { method, targets, bands, uncovered, loading } = results;
  for (const line of table([['code', 'target'], ...targets.map(({ code, name }) => [`${code}`, name])]))
    print(line);
  const left = uncovered > 0 ? `, ${uncovered} left out because the library does not cover them` : '';
  print(`${method} over ${count(bands.length, 'band')}${left}${loadingText(loading)}`);
  printMaps(results);
}
