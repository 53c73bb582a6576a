import { Command } from 'commander';
import type { UnmixInputs, UnmixResults } from '../../../analysis/index.js';
import { flag, integer, positiveInteger } from '../../options/option-groups.js';
import { count, print, table } from '../../output/print.js';
import { type AnalyseFlags, analysis, printMaps } from './run-analysis.js';
import { LIBRARY_FILE, libraryOf } from './spectral-library.js';

type UnmixFlags = AnalyseFlags & {
  endmembers?: number;
  library?: string;
  targets?: string;
  method: NonNullable<UnmixInputs['method']>;
  seed?: number;
};

export const unmixCommand = () =>
  analysis<UnmixFlags, UnmixResults>(
    new Command('unmix')
      .description('maps of the abundance of each endmember')
      .addOption(flag('--endmembers <n>', 'find so many in the collection', positiveInteger))
      .addOption(flag('--library <file>', `${LIBRARY_FILE}, in place of such that are found`))
      .addOption(flag('--targets <names>', 'spectra of the library, with commas; default all'))
      .addOption(
        flag('--method <name>', 'abundances that add up to 1, or that are not negative')
          .choices(['fcls', 'nnls'])
          .default('fcls'),
      )
      .addOption(flag('--seed <n>', 'of the directions in which endmembers are sought', integer)),
    unmixInputs,
    printUnmix,
  );

async function unmixInputs({ endmembers, library, targets, method, seed }: UnmixFlags): Promise<object> {
  return { endmembers, library: library && (await libraryOf(library, targets)), method, seed };
}

function printUnmix(results: UnmixResults): void {
  const { method, endmembers, bands } = results;
  const rows = endmembers.map(({ name, tile = '', position }, i) => [
    ...[`${i + 1}`, name, position?.join(',') ?? '', tile],
  ]);
  for (const line of table([['band', 'endmember', 'lon,lat', 'tile'], ...rows])) print(line);
  print(`${method} over ${count(bands.length, 'band')}`);
  printMaps(results);
}
