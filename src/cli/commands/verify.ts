import { Command } from 'commander';
import { plural } from '../../plural.js';
import type { VerifyReport } from '../../storage/index.js';
import { connect } from '../connect.js';
import { type TargetOptions, withTarget } from '../options/option-groups.js';
import { logToStderr, print, printJson, progressLine } from '../output/print.js';
import { interruptSignal } from '../signals.js';

export function verifyCommand(): Command {
  const command = new Command('verify').description(
    'check that every record has its files and that every checksum fits, and list what no record names',
  );
  return withTarget(command).action(async (flags: TargetOptions) => {
    const target = await connect(flags);
    const line = progressLine('tiles');
    try {
      const hooks = { signal: interruptSignal(), onProgress: line.update };
      const { results } = await target.client.run<VerifyReport>('verify', {}, hooks);
      line.end();
      for (const { kind, what } of results.problems) logToStderr(`${kind}: ${what}`);
      for (const { path, bytes } of results.orphans) logToStderr(`orphan: ${path} (${bytes} bytes)`);
      if (flags.format === 'json') printJson(results);
      else {
        const { tiles, files, bytes, problemCount, orphanCount, orphanBytes } = results;
        print(`${plural(tiles, 'tile')}, ${plural(files, 'file')}, ${(bytes / 1e6).toFixed(1)} MB checked`);
        if (orphanCount > 0) {
          const what = plural(orphanCount, 'file or folder', 'files and folders');
          print(`${what} of ${(orphanBytes / 1e6).toFixed(1)} MB that no record names: no harm, and no use`);
        }
        print(problemCount === 0 ? 'everything is whole' : plural(problemCount, 'problem'));
      }
      if (results.problemCount > 0) process.exitCode = 1;
    } finally {
      line.end();
      await target.close();
    }
  });
}
