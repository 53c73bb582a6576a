import { readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { type Client, JobError, type LogLine, type RunHooks } from '../../client/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import { formatDuration } from '../../html/index.js';
import type { IngestOptions, IngestResults } from '../../ingest/index.js';
import type { Timed } from '../../jobs/index.js';
import { plural } from '../../plural.js';
import { type Connection, connect, hasDataFolder } from '../connect.js';
import { notFolder } from '../errors.js';
import {
  createOption,
  parseIntegerOption,
  parseNumberOption,
  parsePositiveIntegerOption,
  type TargetOptions,
  withCloudModel,
  withResources,
  withTarget,
} from '../options/option-groups.js';
import { logToStderr, print, printJson, progressLine, warningLines } from '../output/print.js';
import { interruptSignal } from '../signals.js';
import { hasStdoutFailed } from '../stdio.js';
import { watchForCompleteInputs } from '../watch-folders.js';

type IngestFlags = TargetOptions & IngestOptions & { watch?: boolean; upload?: boolean };

const numberOrNan = (value: string): number | 'nan' =>
  value.trim().toLowerCase() === 'nan' ? 'nan' : parseNumberOption(value);

/** "red=3,nir=4" */
function bandNames(value: string): Record<string, number> {
  const pairs = value.split(',').map((pair) => /^([\w.-]+)=(\d+)$/.exec(pair.trim()));
  if (pairs.includes(null))
    throw new InvalidArgumentError('It must be names with band numbers, such as red=3,nir=4.');
  const names = Object.fromEntries(pairs.map((match) => [match?.[1], Number(match?.[2])]));
  if (Object.keys(names).length < pairs.length) throw new InvalidArgumentError('A name is given twice.');
  return names;
}

/** "400-2500", "400,410,420", or a file with one number for each band; nanometres. */
function wavelengthList(value: string): number[] {
  const range = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(value.trim());
  if (range) return [Number(range[1]), Number(range[2])];
  const text = /^[\d.,\s]+$/.test(value) ? value : readText(value);
  const numbers = text.split(/[\s,;]+/).filter((item) => item !== '');
  if (numbers.length < 2 || !numbers.every((item) => Number.isFinite(Number(item))))
    throw new InvalidArgumentError('It must be numbers of nanometres, such as 400-2500, or a file of them.');
  return numbers.map(Number);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new InvalidArgumentError(`The file cannot be read: ${messageOf(error)}.`);
  }
}

export function ingestCommand(): Command {
  const command = new Command('ingest')
    .description('cut scenes into tiles')
    .argument('<path...>', 'raster files, archives, products as delivered, or folders of these')
    .addOption(
      createOption(
        '--collection <id>',
        'collection to put the tiles into (small letters, digits, - and .); known products have their own',
      ),
    )
    .addOption(createOption('--grid <grid>', 'kind of cells').choices(['geohash', 'quadtile']))
    .addOption(
      createOption(
        '--precision <n>',
        'length of the geocodes; by default cells are at least 128 px wide',
        parseIntegerOption,
      ),
    )
    .addOption(createOption('--id <id>', 'scene id of a raster that is not a known product'))
    .addOption(
      createOption(
        '--datetime <time>',
        'when it was taken: 2024-06-01T10:30:00Z, 2024-06-01, 2024-06, 2024, or start/end',
      ),
    )
    .addOption(createOption('--bands <names>', 'names of bands, such as red=3,nir=4', bandNames))
    .addOption(
      createOption('--nodata <value>', 'stored value that means no data, a number or nan', numberOrNan),
    )
    .addOption(
      createOption('--scale <factor>', 'physical value = stored * scale + offset', parseNumberOption),
    )
    .addOption(createOption('--offset <value>', 'see --scale', parseNumberOption))
    .addOption(createOption('--platform <name>', 'name of the satellite or aircraft'))
    .addOption(
      createOption(
        '--mask-band <n>',
        'band that is 0 where clear and anything else where cloudy',
        parsePositiveIntegerOption,
      ),
    );
  command
    .addOption(
      createOption(
        '--position <place>',
        'where a raster without a position lies: EPSG:CODE,ULX,ULY,LRX,LRY, outer corners as of gdal_translate -a_ullr',
      ),
    )
    .addOption(
      createOption(
        '--wavelengths <nm>',
        'wavelengths of the bands: a file with a number for each, or those of the first and last, such as 400-2500',
        wavelengthList,
      ),
    )
    .addOption(createOption('--layer <name>', 'array of a MATLAB file that holds several'))
    .addOption(
      createOption(
        '--cloud-test',
        'where the product has no cloud mask, tell cloud by reflectance (needs six bands by their names)',
      ),
    )
    .addOption(
      createOption(
        '--compress <method>',
        'compress the tiles of imaging spectrometers: a quarter smaller, and slower to read',
      ).choices(['deflate']),
    )
    .addOption(
      createOption(
        '--dry-run',
        'list the tiles that there would be, and make none; which are empty is known only later',
      ),
    )
    .addOption(
      createOption(
        '--watch',
        'go on, and ingest what comes into the folders, until stopped; with --format json one line a batch',
      ).conflicts('dryRun'),
    );
  command.addOption(
    createOption(
      '--upload',
      'send the files to the server, which else looks for them on its own disk; zip or tar folders',
    ),
  );
  return withTarget(withResources(withCloudModel(command))).action(
    async (paths: string[], flags: IngestFlags) => {
      await requireOptions(flags);
      await requireInputs(paths, flags);
      const target = await connect(flags, { create: true });
      const signal = interruptSignal();
      try {
        if (flags.watch) {
          await watch(target, paths, flags, signal);
          return;
        }
        const results = await ingest(target, paths, flags, signal);
        if (flags.format === 'json') printJson(results);
        else printResults(results, target.name);
        if (results.failed.length > 0) process.exitCode = results.scenes.length > 0 ? 3 : 1;
      } finally {
        await target.close();
      }
    },
  );
}

async function ingest(
  target: Connection,
  paths: string[],
  flags: IngestFlags,
  signal: AbortSignal,
): Promise<Timed<IngestResults>> {
  const {
    data,
    server,
    token,
    memory,
    cores,
    reserve,
    cloudModel,
    format,
    config,
    watch,
    upload,
    ...options
  } = flags;
  const line = progressLine('tiles');
  // Loaded here, so that a command that ingests nothing does not wait for it.
  const { PLAN_PREFIX } = await import('../../ingest/index.js');
  try {
    const onLog = ({ level, text }: LogLine) => {
      if (!text.startsWith(PLAN_PREFIX)) return;
      line.end();
      logToStderr(`${level === 'warning' ? 'warning: ' : ''}${text.slice(PLAN_PREFIX.length)}`);
    };
    const hooks = { signal, onProgress: line.update, onLog };
    const results = upload
      ? await uploadAll(target.client, paths, options, hooks)
      : await ingestPaths(target.client, paths, options, hooks);
    line.end();
    printWarnings(results);
    return results;
  } finally {
    line.end();
  }
}

function printWarnings({ scenes, passedOver, failed }: IngestResults): void {
  for (const line of warningLines(scenes)) logToStderr(`warning: ${line}`);
  if (passedOver.length > 0)
    logToStderr(
      `warning: ${plural(passedOver.length, 'folder')} below not looked into; name what is meant: ${passedOver.join(', ')}`,
    );
  for (const { path, code, message } of failed)
    logToStderr(`error: ${message.includes(path) ? '' : `${path}: `}${message} [${code}]`);
}

/** Refuses values that no input could use as wrong usage. Throws TW_INGEST_BAD_OPTION and TW_RASTER_UNKNOWN_CRS. */
async function requireOptions({ datetime, position }: IngestFlags): Promise<void> {
  if (datetime === undefined && position === undefined) return;
  const { checkOptions } = await import('../../ingest/index.js');
  checkOptions({ datetime, position });
}

/**
 * Checks the paths before a data folder is created, which a mistyped path should not leave behind. Throws TW_CLI_NOT_FOLDER, and
 * TW_INGEST_NOT_RECOGNISED if there is neither an input nor a data folder. Otherwise the job reports a missing input.
 */
async function requireInputs(paths: string[], { watch, server, data }: IngestFlags): Promise<void> {
  if (watch) return requireFolders(paths);
  if (server || hasDataFolder(data)) return;
  const looks = await Promise.allSettled(paths.map((path) => stat(path)));
  if (looks.some(({ status }) => status === 'fulfilled')) return;
  const { findInputs } = await import('../../ingest/index.js');
  await findInputs(paths[0]!);
}

async function requireFolders(folders: string[]): Promise<void> {
  for (const folder of folders) {
    const info = await stat(folder).catch((error) => {
      throw notFolder.because(error, folder);
    });
    if (!info.isDirectory()) throw notFolder(folder);
  }
}

/** What is no scene is passed over here: other files may lie in the folder. */
async function watch(
  target: Connection,
  folders: string[],
  flags: IngestFlags,
  signal: AbortSignal,
): Promise<void> {
  const { findInputs, notRecognised } = await import('../../ingest/index.js');
  logToStderr(`watching ${folders.join(', ')}; Ctrl-C ends`);
  let pending: string[] = [];
  /** Told already. */
  let failed: string[] = [];
  for await (const settled of watchForCompleteInputs(folders, signal)) {
    // Standard output is closed or full, so no further batch can be reported.
    if (hasStdoutFailed()) return;
    const inputs = [...pending];
    pending = [];
    for (const path of settled) {
      const found = await findInputs(path).catch((error) => {
        if (!notRecognised.is(error)) logToStderr(`error: ${messageOf(error)}`);
        return null;
      });
      inputs.push(...(found?.inputs ?? []));
    }
    if (inputs.length === 0) continue;
    try {
      const results = await ingest(target, inputs, flags, signal);
      if (flags.format === 'json') print(JSON.stringify(results));
      else printResults(results, target.name);
    } catch (error) {
      if (signal.aborted) return;
      // It is tried again with the next look: a full job queue empties, a server comes back.
      if (inputs.join() !== failed.join()) logToStderr(`error: ${messageOf(error)}; it is tried again`);
      failed = inputs;
      pending = inputs;
    }
  }
}

async function ingestPaths(
  client: Client,
  paths: string[],
  options: IngestOptions,
  hooks: RunHooks,
): Promise<Timed<IngestResults>> {
  const inputs = { ...options, paths: paths.map((path) => resolve(path)) };
  return resultsEvenIfFailed(client.run('ingest', inputs, hooks));
}

/** The results of a job; also where every scene failed, so that each is told with its own reason. */
async function resultsEvenIfFailed(
  run: Promise<{ results: Timed<IngestResults> }>,
): Promise<Timed<IngestResults>> {
  try {
    return (await run).results;
  } catch (error) {
    if (error instanceof JobError && error.results) return error.results as Timed<IngestResults>;
    throw error;
  }
}

/** The files to send for the paths: of a folder of single files each, as ingest takes them. The folder of a product stays one path. */
async function findFilesToUpload(paths: string[]): Promise<{ files: string[]; passedOver: string[] }> {
  const { findInputs } = await import('../../ingest/index.js');
  const files: string[] = [];
  const passedOver: string[] = [];
  for (const path of paths) {
    // A path that cannot be sent is reported when it is sent.
    const isFolder = await stat(path).then(
      (info) => info.isDirectory(),
      () => false,
    );
    const found = isFolder ? await findInputs(path) : { inputs: [path], passedOver: [] };
    files.push(...found.inputs);
    passedOver.push(...found.passedOver);
  }
  return { files, passedOver };
}

/** Sends one file after the other; one that fails is named, and the others go on. */
async function uploadAll(
  client: Client,
  paths: string[],
  options: IngestOptions,
  hooks: RunHooks,
): Promise<Timed<IngestResults>> {
  const { sideFilesOf } = await import('../../ingest/index.js');
  const { files, passedOver } = await findFilesToUpload(paths);
  const all: Timed<IngestResults> = {
    collection: null,
    scenes: [],
    tiles: 0,
    failed: [],
    passedOver,
    seconds: 0,
  };
  for (const path of files) {
    try {
      const sideFiles = await sideFilesOf(path);
      logToStderr(`sending ${[path, ...sideFiles].join(', ')}`);
      const results = await resultsEvenIfFailed(client.upload(path, options, hooks, sideFiles));
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

function printResults({ scenes, tiles, seconds }: Timed<IngestResults>, where: string): void {
  for (const { id, collection, tiles: made, unchanged, replaced, geocodes } of scenes) {
    if (geocodes) {
      print(
        `${collection}  ${id}  ${plural(made, 'tile')} at most${replaced ? ', in place of those there' : ''}`,
      );
      for (const geocode of geocodes) print(`  ${geocode}`);
      continue;
    }
    const what = unchanged ? 'already there, unchanged' : plural(made, 'tile');
    print(`${collection}  ${id}  ${what}${replaced ? ', in place of those that were there' : ''}`);
  }
  if (scenes.length > 0 && !scenes[0].geocodes) {
    print(
      `${plural(tiles, 'tile')} of ${plural(scenes.length, 'scene')} in ${where}, ${formatDuration(seconds)}`,
    );
  }
}
