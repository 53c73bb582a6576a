/** What the commands that make tiles of tiles have in common. */
import type { WrangleResults } from '../../wrangle/index.js';
import { interruptSignal } from '../interrupt.js';
import type { TargetOptions } from '../options.js';
import { count, duration, note, print, printJson, progressLine } from '../output.js';
import { openTarget } from '../target.js';

/** What the tiles are that a process makes. */
const SOURCES = { fill: 'filled', split: 'split', coalesce: 'coalesced' } as const;

/** Runs a process and prints what it made. Exit code 3 where some tiles failed, 1 where nothing fits the filter. */
export async function runWrangle(
  process_: keyof typeof SOURCES,
  inputs: object,
  flags: TargetOptions,
): Promise<void> {
  const source = SOURCES[process_];
  const hint = `they lie beside the raw tiles: "search --source ${source}" finds them alone, "--source raw" leaves them out`;
  const target = await openTarget(flags);
  const line = progressLine('tiles');
  try {
    const { job, results } = await target.client.run<WrangleResults>(process_, inputs, {
      signal: interruptSignal(),
      onProgress: line.update,
    });
    line.end();
    if (flags.format === 'json') printJson({ job, ...results });
    else printResults(results);
    if (results.tiles > 0) note(hint);
    if (results.failures > 0) process.exitCode = 3;
    const { tiles, unchanged, skipped } = results;
    if (tiles + unchanged + results.failures > 0 || Object.keys(skipped).length > 0) return;
    note(
      'error: no tile fits the filter. Tiles without a known cloud cover fit no cloud limit; --recurse takes the cells below a geocode.',
    );
    process.exitCode = 1;
  } finally {
    line.end();
    await target.close();
  }
}

function printResults({ tiles, unchanged, skipped, failed, failures, seconds }: WrangleResults): void {
  for (const { tile, code, message } of failed) note(`failed ${tile}: ${message} [${code}]`);
  for (const [reason, number] of Object.entries(skipped))
    print(`${count(number, 'tile')} skipped: ${reason}`);
  const failing = failures > 0 ? `, ${failures} failed` : '';
  print(`${count(tiles, 'tile')} made, ${unchanged} unchanged${failing}, ${duration(seconds)}`);
}
