import { resolve } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import type { Client, RunHooks } from '../../client/index.js';
import { TilewrightError } from '../../errors.js';
import type { IngestOptions, IngestResults } from '../../ingest/index.js';
import { interruptSignal } from '../interrupt.js';
import { flag, integer, number, positiveInteger, type TargetOptions, withTarget } from '../options.js';
import { count, duration, note, print, printJson, progressLine } from '../output.js';
import { openTarget } from '../target.js';

type IngestFlags = TargetOptions & IngestOptions & { upload?: boolean };

/** "red=3,nir=4" */
function bandNames(value: string): Record<string, number> {
  const pairs = value.split(',').map((pair) => /^([\w.-]+)=(\d+)$/.exec(pair.trim()));
  if (pairs.includes(null))
    throw new InvalidArgumentError('It must be names with band numbers, such as red=3,nir=4.');
  const names = Object.fromEntries(pairs.map((match) => [match?.[1], Number(match?.[2])]));
  if (Object.keys(names).length < pairs.length) throw new InvalidArgumentError('A name is given twice.');
  return names;
}

export function ingestCommand(): Command {
  const command = new Command('ingest')
    .description('cut scenes into tiles')
    .argument('<path...>', 'GeoTIFF files, or folders as Landsat delivers them')
    .addOption(
      flag(
        '--collection <id>',
        'collection to put the tiles into (small letters, digits, - and .); known products have their own',
      ),
    )
    .addOption(flag('--grid <grid>', 'kind of cells').choices(['geohash', 'quadtile']))
    .addOption(
      flag('--precision <n>', 'length of the geocodes; by default cells are at least 128 px wide', integer),
    )
    .addOption(flag('--id <id>', 'scene id of a raster that is not a known product'))
    .addOption(flag('--datetime <time>', 'when it was taken, such as 2024-06-01T10:30:00Z, or start/end'))
    .addOption(flag('--bands <names>', 'names of bands, such as red=3,nir=4', bandNames))
    .addOption(flag('--nodata <value>', 'stored value that means no data', number))
    .addOption(flag('--scale <factor>', 'physical value = stored * scale + offset', number))
    .addOption(flag('--offset <value>', 'see --scale', number))
    .addOption(flag('--platform <name>', 'name of the satellite or aircraft'))
    .addOption(
      flag('--mask-band <n>', 'band that is 0 where clear and anything else where cloudy', positiveInteger),
    );
  command.addOption(
    flag(
      '--upload',
      'send the files to the server, which else looks for them on its own disk; zip or tar folders',
    ),
  );
  return withTarget(command).action(async (paths: string[], flags: IngestFlags) => {
    const { data, server, token, memory, cores, reserve, format, config, upload, ...options } = flags;
    const target = await openTarget(flags, { create: true });
    const line = progressLine('tiles');
    try {
      const hooks = { signal: interruptSignal(), onProgress: line.update };
      const results = upload
        ? await sendAll(target.client, paths, options, hooks)
        : (
            await target.client.run<IngestResults>(
              'ingest',
              { ...options, paths: paths.map((path) => resolve(path)) },
              hooks,
            )
          ).results;
      line.end();
      for (const { id, warnings } of results.scenes)
        for (const warning of warnings) note(`warning: ${id}: ${warning}`);
      const { passedOver } = results;
      if (passedOver.length > 0)
        note(`warning: ${count(passedOver.length, 'folder')} without a scene: ${passedOver.join(', ')}`);
      for (const { code, message } of results.failed) note(`error: ${message} [${code}]`);
      if (format === 'json') printJson(results);
      else printResults(results, target.name);
      if (results.failed.length > 0) process.exitCode = results.scenes.length > 0 ? 3 : 1;
    } finally {
      line.end();
      await target.close();
    }
  });
}

/** Sends one file after the other; one that fails is named, and the others go on. */
async function sendAll(
  client: Client,
  paths: string[],
  options: IngestOptions,
  hooks: RunHooks,
): Promise<IngestResults> {
  const all: IngestResults = {
    collection: null,
    scenes: [],
    tiles: 0,
    failed: [],
    passedOver: [],
    seconds: 0,
  };
  for (const path of paths) {
    try {
      note(`sending ${path}`);
      const { results } = await client.upload<IngestResults>(path, options, hooks);
      all.collection ??= results.collection;
      all.scenes.push(...results.scenes);
      all.tiles += results.tiles;
      all.failed.push(...results.failed);
      all.passedOver.push(...results.passedOver);
      all.seconds += results.seconds;
    } catch (error) {
      if (hooks.signal?.aborted || !(error instanceof TilewrightError)) throw error;
      all.failed.push({ path, code: error.code, message: error.message });
    }
  }
  return all;
}

function printResults({ scenes, tiles, seconds }: IngestResults, where: string): void {
  for (const { id, collection, tiles: made, unchanged, replaced } of scenes) {
    const what = unchanged ? 'already there, unchanged' : count(made, 'tile');
    print(`${collection}  ${id}  ${what}${replaced ? ', in place of those that were there' : ''}`);
  }
  if (scenes.length > 0) {
    print(`${count(tiles, 'tile')} of ${count(scenes.length, 'scene')} in ${where}, ${duration(seconds)}`);
  }
}
