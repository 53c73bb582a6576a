/** `tilewright verify`: checks that records, files and checksums match. */
import { Command } from 'commander';
import type { VerifyReport } from '../../storage/index.js';
import { plural } from '../../utils/text.js';
import { runJob, withConnection } from '../connection.js';
import { type TargetOptions, withTarget } from '../options.js';
import { logToStderr, print, printJson } from '../output.js';

export function verifyCommand(): Command {
  const command = new Command('verify').description(
    'check that every record has its files and that all checksums match, and list files without a record',
  );
  return withTarget(command).action(async (flags: TargetOptions) => {
    return withConnection(flags, async ({ client }) => {
      const { results } = await runJob('tiles', (hooks) => client.run<VerifyReport>('verify', {}, hooks));
      for (const { kind, what } of results.problems) logToStderr(`${kind}: ${what}`);
      for (const { path, bytes } of results.orphans) logToStderr(`orphan: ${path} (${bytes} bytes)`);
      if (flags.format === 'json') printJson(results);
      else {
        const { tiles, files, bytes, problemCount, orphanCount, orphanBytes } = results;
        print(`${plural(tiles, 'tile')}, ${plural(files, 'file')}, ${(bytes / 1e6).toFixed(1)} MB checked`);
        if (orphanCount > 0) {
          const what = plural(orphanCount, 'file or folder', 'files and folders');
          print(`${what} of ${(orphanBytes / 1e6).toFixed(1)} MB without a record: harmless and unused`);
        }
        print(problemCount === 0 ? 'no problems' : plural(problemCount, 'problem'));
      }
      if (results.problemCount > 0) process.exitCode = 1;
    });
  });
}
