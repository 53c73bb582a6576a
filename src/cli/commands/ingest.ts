/** `tilewright ingest`: ingests paths once, uploads files to a server, or watches folders, and prints the scenes. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Command } from 'commander';
import type { Client, LogLine, RunHooks } from '../../client/index.js';
import { messageOf } from '../../errors.js';
import { formatDuration } from '../../html/index.js';
import type { IngestInputs, IngestOptions, IngestResults, SkippedFile } from '../../ingest/index.js';
import type { Timed } from '../../jobs/index.js';
import type { CheckResults } from '../../training/index.js';
import { groupFailures, isRemoteAddress, plural } from '../../utils/text.js';
import { type Connection, hasDataFolder, outcomeOf, withConnection } from '../connection.js';
import { notFolder } from '../errors.js';
import {
  addOptions,
  createOption,
  optionValues,
  type TargetOptions,
  withCloudModel,
  withResources,
  withTarget,
} from '../options.js';
import { logToStderr, print, printJson, warningLines, withProgressLine } from '../output.js';
import { hasStdoutFailed, interruptSignal } from '../process.js';
import { checkSummary } from './check.js';
import { uploadAll, watchForCompleteInputs } from './ingest-files.js';
import { ingestOptions, type RemoteFlags, remoteInputs, remoteOptions } from './ingest-options.js';

type SceneFacts = Pick<
  IngestResults['scenes'][number],
  'id' | 'collection' | 'tiles' | 'unchanged' | 'replaced'
>;

function lineOf({ collection, id, tiles, unchanged, replaced }: SceneFacts): string {
  const what = unchanged ? 'already ingested, unchanged' : plural(tiles, 'tile');
  return `${collection}  ${id}  ${what}${replaced ? ', replacing the earlier tiles' : ''}`;
}

/** The line that the log of a job has for each scene that ends. */
const LOGGED_SCENE = /^([^\s/]+)\/(\S+): (?:(unchanged)|(\d+) tiles(, replaced)?)$/;

/** Prints the line of each scene once: when the log of the job has it, or with the results. */
class SceneLines {
  /** How often each line was printed before the results. */
  private readonly printed = new Map<string, number>();

  /** Returns the line of a scene that has ended; undefined if the line of the log is about something else. */
  static of({ level, text }: LogLine): string | undefined {
    const [, collection, id, unchanged, tiles, replaced] = LOGGED_SCENE.exec(text) ?? [];
    if (level !== 'info' || collection === undefined || id === undefined) return undefined;
    const facts = { tiles: Number(tiles ?? 0), unchanged: unchanged !== undefined };
    return lineOf({ collection, id, ...facts, replaced: replaced !== undefined });
  }

  printEarly(line: string): void {
    this.printed.set(line, (this.printed.get(line) ?? 0) + 1);
    print(line);
  }

  printOnce(line: string): void {
    const times = this.printed.get(line) ?? 0;
    if (times === 0) print(line);
    else if (times === 1) this.printed.delete(line);
    else this.printed.set(line, times - 1);
  }
}

/** Prints the scenes that `shown` has not printed, and their sum. */
function printResults(results: Timed<IngestResults>, where: string, shown: SceneLines, dryRun = false): void {
  const { scenes, tiles, failed, seconds } = results;
  for (const scene of scenes) {
    const { id, collection, tiles: made, replaced, geocodes, names = [], fetch } = scene;
    if (geocodes) {
      const read = fetch
        ? `, ${plural(fetch.requests, 'request')}, ${(fetch.bytes / 1e6).toFixed(1)} MB`
        : '';
      print(
        `${collection}  ${id}  ${plural(made, 'tile')} at most${replaced ? ', replacing existing tiles' : ''}${read}`,
      );
      for (const { file, ...facts } of names) {
        const texts = Object.entries(facts).map(([name, value]) => `${name} ${value}`);
        print(`  ${file}: ${texts.join(', ')}`);
      }
      for (const geocode of geocodes) print(`  ${geocode}`);
      continue;
    }
    shown.printOnce(lineOf(scene));
  }
  const same = scenes.filter(({ unchanged }) => unchanged).length;
  if (dryRun) {
    printPlan(results, same, where);
    return;
  }
  if (scenes.length === 0) return;
  const kept =
    same === 0 ? '' : same === scenes.length ? ', unchanged' : `, ${plural(same, 'scene')} unchanged`;
  const lost = failed.length > 0 ? `, ${failed.length} failed` : '';
  print(
    `${plural(tiles, 'tile')} of ${plural(scenes.length, 'scene')} in ${where}${kept}${lost}, ${formatDuration(seconds)}`,
  );
}

/** Prints the sum of a dry run. Scenes that are stored count apart, because an ingest would not read them. */
function printPlan({ scenes, failed }: IngestResults, same: number, where: string): void {
  const planned = scenes.filter(({ unchanged }) => !unchanged);
  const tiles = planned.reduce((sum, scene) => sum + scene.tiles, 0);
  const reads = planned.flatMap(({ fetch }) => fetch ?? []);
  const [requests, bytes] = (['requests', 'bytes'] as const).map((of) =>
    reads.reduce((sum, read) => sum + read[of], 0),
  );
  const read =
    reads.length > 0 ? ` with ${plural(requests!, 'request')} and ${(bytes! / 1e6).toFixed(1)} MB` : '';
  const kept = same > 0 ? `; ${plural(same, 'scene')} already ingested, unchanged` : '';
  const lost = failed.length > 0 ? `; ${failed.length} failed` : '';
  if (scenes.length > 0)
    print(
      `would make at most ${plural(tiles, 'tile')} of ${plural(planned.length, 'scene')} in ${where}${read}${kept}${lost}`,
    );
}

type IngestFlags = TargetOptions &
  IngestOptions &
  RemoteFlags & { watch?: boolean; upload?: boolean; check?: string };

export function ingestCommand(): Command {
  const inputs = ingestOptions();
  const command = addOptions(
    new Command('ingest')
      .description('cut scenes into tiles')
      .argument(
        '[path...]',
        'raster files, archives, products as delivered, or folders of these; or URLs of rasters: https://... and s3://...',
      ),
    [
      ...inputs,
      ...remoteOptions(),
      createOption(
        '--watch',
        'keep running and ingest new files in the folders; with --format json, print one line for each batch',
      ).conflicts('dryRun'),
      createOption(
        '--check <model>',
        'then check if the models of this kind are still valid for the places of the collection, as "tilewright check" does',
      )
        .choices(['ndvi', 'ndmi', 'cloud-removal'])
        .conflicts('dryRun'),
      createOption(
        '--upload',
        'send the files to the server, instead of paths on the disk of the server; pack a folder as zip or tar first',
      ),
    ],
  );
  return withTarget(withResources(withCloudModel(command))).action(
    async (paths: string[], flags: IngestFlags) => {
      const { fromStac } = flags;
      const fail = (text: string): never => command.error(text);
      if (paths.length === 0 && fromStac === undefined)
        fail(
          'error: nothing to ingest; name files, folders or URLs of rasters, or a catalog with --from-stac',
        );
      if (paths.length > 0 && fromStac !== undefined)
        fail(
          `error: ${paths[0]} and --from-stac cannot be ingested by one command; use one command for each`,
        );
      const options = await remoteInputs(flags, optionValues(inputs, flags), fail);
      if (fromStac === undefined) {
        await requireOptions(flags);
        await requireInputs(paths, flags);
      }
      return withConnection(
        flags,
        async (target) => {
          const signal = interruptSignal();
          const shown = new SceneLines();
          // A terminal has a progress line until the end. A dry run lists the cells of a scene below its line.
          const isShownEarly =
            flags.format === 'text' && !flags.dryRun && !(process.stdout.isTTY && process.stderr.isTTY);
          const onScene = (line: string) => isShownEarly && shown.printEarly(line);
          const send = (found: string[]) =>
            ingest(target.client, found, options, flags.upload ? uploadAll : ingestPaths, {
              signal,
              onScene,
            });
          if (flags.watch) {
            await watch(target, paths, flags, send, shown, signal);
            return;
          }
          const results = await send(paths);
          await report(target, results, flags, printJson, shown, signal);
          if (results.failed.length > 0) process.exitCode = results.scenes.length > 0 ? 3 : 1;
        },
        { create: true },
      );
    },
  );
}

/** Prints the results. If a check was requested, it follows, and its error does not hide the results of the ingest. */
async function report(
  { client, name }: Connection,
  results: Timed<IngestResults>,
  flags: IngestFlags,
  printAll: (results: object) => void,
  shown: SceneLines,
  signal: AbortSignal,
): Promise<void> {
  if (flags.format !== 'json') {
    printResults(results, name, shown, flags.dryRun);
    const check = await checkModels(client, results, flags, signal);
    for (const line of check ? checkSummary(check) : []) print(line);
    return;
  }
  let check: CheckResults | undefined;
  try {
    check = await checkModels(client, results, flags, signal);
  } finally {
    printAll({ ...results, ...(check && { check }) });
  }
}

/** Checks the models of the collections of these scenes, if this was requested. */
async function checkModels(
  client: Client,
  { scenes }: IngestResults,
  { check: model }: IngestFlags,
  signal: AbortSignal,
): Promise<CheckResults | undefined> {
  const collections = [...new Set(scenes.map(({ collection }) => collection))];
  if (model === undefined || collections.length === 0) return undefined;
  const inputs = { model, filter: { collections } };
  const { results } = await withProgressLine('places', ({ update }) =>
    client.run<CheckResults>('check', inputs, { signal, onProgress: update }),
  );
  return results;
}

async function ingest(
  client: Client,
  paths: string[],
  options: Partial<IngestInputs>,
  send: typeof ingestPaths,
  { signal, onScene }: { signal: AbortSignal; onScene(line: string): void },
): Promise<Timed<IngestResults>> {
  // This import is slow, and help does not need it.
  const { PLAN_PREFIX } = await import('../../ingest/index.js');
  const results = await withProgressLine('tiles', (line) => {
    const onLog = (logged: LogLine) => {
      const { level, text } = logged;
      const scene = SceneLines.of(logged);
      if (scene !== undefined) {
        line.end();
        onScene(scene);
      }
      if (!text.startsWith(PLAN_PREFIX)) return;
      line.end();
      logToStderr(`${level === 'warning' ? 'warning: ' : ''}${text.slice(PLAN_PREFIX.length)}`);
    };
    const hooks = { signal, onProgress: line.update, onLog };
    return send(client, paths, options, hooks);
  });
  printWarnings(results);
  if (options.stac && results.scenes.length + results.failed.length === 0 && !results.skipped?.length)
    logToStderr(
      'warning: no Item matches the search; check the collection, the dates, and that --bbox is west,south,east,north',
    );
  return results;
}

const skippedWarning = ({ path, reason }: SkippedFile) => `warning: ${path} is skipped: ${reason}`;

function printWarnings({ scenes, passedOver, skipped = [], failed, suggested }: IngestResults): void {
  for (const line of warningLines(scenes)) logToStderr(`warning: ${line}`);
  if (passedOver.length > 0)
    logToStderr(
      `warning: ${plural(passedOver.length, 'subfolder')} without an input, or not searched; name deeper folders that you want to ingest: ${passedOver.join(', ')}`,
    );
  for (const file of skipped) logToStderr(skippedWarning(file));
  for (const group of groupFailures(failed)) logToStderr(failureLine(group));
  if (suggested) logToStderr(`try: ${commandWith(suggested)}`);
}

/** Names of files in the line of a group. */
const MAX_LISTED_FILES = 3;

/** One line for failures with the same reason. */
function failureLine(failures: IngestResults['failed']): string {
  const [{ path, code, message }] = failures as [IngestResults['failed'][number]];
  if (failures.length === 1) return `error: ${message.includes(path) ? '' : `${path}: `}${message} [${code}]`;
  const names = failures.slice(0, MAX_LISTED_FILES).map((failure) => failure.path);
  const more = failures.length - names.length;
  const reason = message.startsWith(`${path}: `) ? message.slice(path.length + 2) : message;
  const files = `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  return `error: ${plural(failures.length, 'input')}: ${reason} [${code}]: ${files}`;
}

const TOKEN_VARIABLE = '$TILEWRIGHT_TOKEN';

/** This command with more options, for a shell. */
function commandWith({ collection, namePattern }: NonNullable<IngestResults['suggested']>): string {
  const quoted = (text: string) =>
    /^[\w@%+=:,./-]+$/.test(text) || text.endsWith(TOKEN_VARIABLE)
      ? text
      : `'${text.replaceAll("'", "'\\''")}'`;
  // A token must not get into logs.
  const args = process.argv.slice(2).map((arg, i, all) => (all[i - 1] === '--token' ? TOKEN_VARIABLE : arg));
  return [
    ...['tilewright', ...args.map((arg) => arg.replace(/^--token=.*/s, `--token=${TOKEN_VARIABLE}`))],
    ...(collection === undefined ? [] : ['--collection', collection]),
    ...(namePattern === undefined ? [] : ['--name-pattern', namePattern]),
  ]
    .map(quoted)
    .join(' ');
}

/**
 * Checks the options whose values are invalid for every input, and reports them as wrong usage. Throws
 * TW_INGEST_BAD_OPTION, TW_INGEST_BAD_PATTERN and TW_RASTER_UNKNOWN_CRS.
 */
async function requireOptions(flags: IngestFlags): Promise<void> {
  const { datetime, position, namePattern } = flags;
  if (datetime === undefined && position === undefined && namePattern === undefined) return;
  const { checkNamePattern, checkOptions } = await import('../../ingest/index.js');
  checkOptions({ datetime, position });
  checkNamePattern(flags);
}

/**
 * Checks the paths before a data folder is created, so that a mistyped path does not create one. Throws TW_CLI_NOT_FOLDER, and
 * TW_INGEST_NOT_RECOGNISED if there is neither an input nor a data folder. If one exists, the job reports the inputs that are missing.
 */
async function requireInputs(paths: string[], { watch, server, data }: IngestFlags): Promise<void> {
  if (watch) return requireFolders(paths);
  if (server || hasDataFolder(data) || paths.some(isRemoteAddress)) return;
  const found = await Promise.allSettled(paths.map((path) => stat(path)));
  if (found.some(({ status }) => status === 'fulfilled')) return;
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

/** Ingests inputs as they become complete, until the signal is aborted. Skips files that are not scenes. */
async function watch(
  target: Connection,
  folders: string[],
  flags: IngestFlags,
  send: (inputs: string[]) => Promise<Timed<IngestResults>>,
  shown: SceneLines,
  signal: AbortSignal,
): Promise<void> {
  const { inputFinder, notRecognised, parseNamePattern, sceneOfFile } = await import('../../ingest/index.js');
  const pattern = flags.namePattern === undefined ? undefined : parseNamePattern(flags.namePattern);
  const sceneOf = (path: string) => (pattern ? sceneOfFile(pattern, path) : path);
  logToStderr(`watching ${folders.join(', ')}; Ctrl-C ends`);
  let pending: string[] = [];
  /** The inputs of the last error that was reported. */
  let failed: string[] = [];
  for await (const settled of watchForCompleteInputs(folders, sceneOf, signal)) {
    // Standard output is closed or full, so no further batch can be reported.
    if (hasStdoutFailed()) return;
    const inputs = [...pending];
    pending = [];
    const finder = inputFinder(flags.namePattern);
    for (const path of settled) {
      const settledInputs = await finder.find(path, 0).catch((error) => {
        if (!notRecognised.is(error)) logToStderr(`error: ${messageOf(error)}`);
        return null;
      });
      inputs.push(...(settledInputs?.inputs ?? []));
      for (const file of settledInputs?.skipped ?? []) logToStderr(skippedWarning(file));
    }
    if (inputs.length === 0) continue;
    try {
      const results = await send(inputs);
      const printAll = (all: object) => print(JSON.stringify(all));
      await report(target, results, flags, printAll, shown, signal).catch((error) => {
        // The scenes are stored; only their check has failed.
        if (!signal.aborted) logToStderr(`error: ${messageOf(error)}`);
      });
    } catch (error) {
      if (signal.aborted) return;
      // The next poll tries again, because a full job queue or a restarting server is temporary.
      if (inputs.join() !== failed.join()) logToStderr(`error: ${messageOf(error)}; trying again`);
      failed = inputs;
      pending = inputs;
    }
  }
}

async function ingestPaths(
  client: Client,
  paths: string[],
  options: Partial<IngestInputs>,
  hooks: RunHooks,
): Promise<Timed<IngestResults>> {
  const inputs = {
    ...options,
    ...(paths.length > 0 && { paths: paths.map((path) => (isRemoteAddress(path) ? path : resolve(path))) }),
  };
  const { results, error } = await outcomeOf<IngestResults>(client.run('ingest', inputs, hooks));
  // If every scene failed, each scene is reported with its reason.
  if (error && results.failed.length === 0) throw error;
  return results;
}
