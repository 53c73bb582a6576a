/** Options that several commands share. Every flag is also an environment variable TILEWRIGHT_* and a key of the config file. */
import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { messageOf } from '../errors.js';
import { type FilterParams, parseBbox, parseDatetime, writeDatetime } from '../query/index.js';
import { parseJson } from '../utils/json-text.js';

/** An option with its environment variable: `--min-cloud` is TILEWRIGHT_MIN_CLOUD. */
export function createOption(flags: string, description: string, parse?: (value: string) => unknown): Option {
  const option = new Option(flags, description);
  if (parse) option.argParser(parse);
  return option.env(`TILEWRIGHT_${option.name().toUpperCase().replaceAll('-', '_')}`);
}

/** Parses a decimal number. `Number` would also accept hexadecimal, octal and binary numbers. */
export function parseNumberOption(value: string): number {
  const parsed = /^\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*$/i.test(value) ? Number(value) : NaN;
  if (!Number.isFinite(parsed)) throw new InvalidArgumentError('It must be a number.');
  return parsed;
}

export function parseIntegerOption(value: string): number {
  const parsed = parseNumberOption(value);
  if (!Number.isInteger(parsed)) throw new InvalidArgumentError('It must be an integer.');
  return parsed;
}

export function parsePositiveIntegerOption(value: string): number {
  const parsed = parseIntegerOption(value);
  if (parsed < 1) throw new InvalidArgumentError('It must be 1 or more.');
  return parsed;
}

const MAX_PORT = 65_535;

export function parsePortOption(value: string): number {
  const parsed = parseIntegerOption(value);
  if (parsed < 0 || parsed > MAX_PORT) throw new InvalidArgumentError(`It must be from 0 to ${MAX_PORT}.`);
  return parsed;
}

/** Parses origins of web pages: `*`, `none`, or addresses without a path, separated by commas. */
export function parseOriginsOption(value: string): string[] {
  if (value === 'none') return [];
  const origins = splitList(value);
  const isOrigin = (text: string) => text === '*' || (URL.canParse(text) && new URL(text).origin === text);
  for (const origin of origins)
    if (!isOrigin(origin))
      throw new InvalidArgumentError(
        'It must be origins such as https://example.org, separated by commas, or *, or none.',
      );
  return origins;
}

/** Parses an address to listen on, such as `192.0.2.7:8081` or `[::1]:8081`. */
export function parseListenOption(value: string): { host: string; port: number } {
  const [, ipv6, name, port] = /^(?:\[([\da-fA-F:.]+)\]|([^\s:[\]/]+)):(\d+)$/.exec(value) ?? [];
  const host = ipv6 ?? name;
  if (host === undefined || port === undefined)
    throw new InvalidArgumentError('It must be a host and a port, such as 192.0.2.7:8081 or [::1]:8081.');
  return { host, port: parsePortOption(port) };
}

/** Checks the URL of a server. */
function parseHttpUrlOption(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw new InvalidArgumentError('It must be an address such as http://127.0.0.1:8080.');
  return value;
}

/** Parses a time, day, month or year. Returns its start as RFC 3339. */
export function parseTimeOption(value: string): string {
  try {
    if (value.includes('/')) throw new RangeError('it is an interval');
    return new Date(parseDatetime(value, { dates: 'periods' }).start!).toISOString();
  } catch (error) {
    throw new InvalidArgumentError(
      `It must be a time such as 2024-06-01T10:30:00Z or 2024-06-01: ${messageOf(error)}.`,
    );
  }
}

/** Parses "2GB", "512MB" or "1000000" as bytes; units are powers of ten. */
export function parseBytesOption(value: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([kMGT]?)B?$/.exec(value.trim());
  if (!match) throw new InvalidArgumentError('It must be a size such as 512MB or 2GB.');
  return Number(match[1]) * 1000 ** ' kMGT'.indexOf(match[2] || ' ');
}

export interface CommonOptions {
  format: 'text' | 'json';
  config?: string;
}

export interface ResourceOptions {
  memory: number;
  cores: number;
  reserve?: number;
}

export interface TargetOptions extends CommonOptions, Partial<ResourceOptions> {
  data: string;
  cloudModel?: string;
  server?: string;
  token?: string;
}

/** The values that options have in `flags`, by their names there. */
export function optionValues(options: Option[], flags: object): Record<string, unknown> {
  const given = flags as Record<string, unknown>;
  return Object.fromEntries(options.map((option) => [option.attributeName(), given[option.attributeName()]]));
}

/** The flags that the command line, the environment or the config file set, as words of a command line. */
export function givenFlags(command: Command, isListed: (name: string) => boolean): string[] {
  return command.options.flatMap((option): string[] => {
    const name = option.attributeName();
    const value: unknown = command.getOptionValue(name);
    const isDefault = command.getOptionValueSource(name) === 'default';
    if (!isListed(name) || isDefault || value === undefined) return [];
    if (option.isBoolean()) return value ? [option.long!] : [];
    if (Array.isArray(value)) return [option.long!, value.join(',')];
    return [option.long!, typeof value === 'object' ? JSON.stringify(value) : String(value)];
  });
}

/** Headings of the help. A command's own flags come before them. */
const FILTER_GROUP = 'Which tiles:';
const TARGET_GROUP = 'Where:';
const RESOURCE_GROUP = 'Resources:';
const OUTPUT_GROUP = 'Output:';

export function addOptions(command: Command, options: Option[]): Command {
  for (const option of options) command.addOption(option);
  return command;
}

function addGroup(command: Command, heading: string, options: Option[]): Command {
  return addOptions(
    command,
    options.map((option) => option.helpGroup(heading)),
  );
}

export function withCommon(command: Command): Command {
  addGroup(command, TARGET_GROUP, [
    createOption('--config <file>', 'JSON file whose keys are flags, such as {"data": "/srv/tiles"}'),
  ]);
  return addGroup(command, OUTPUT_GROUP, [
    createOption('--format <format>', 'output on stdout').choices(['text', 'json']).default('text'),
  ]);
}

export function withData(command: Command): Command {
  return addGroup(command, TARGET_GROUP, [
    createOption('--data <dir>', 'data folder').default('./tilewright-data'),
  ]);
}

/** With this much, all rows of a Sentinel-2 scene are in memory and each file is opened once, so more memory does not help. */
const MAX_DEFAULT_MEMORY_BYTES = 2e9;

export const defaultResources = (): ResourceOptions => ({
  memory: Math.min(MAX_DEFAULT_MEMORY_BYTES, totalmem() / 4),
  cores: availableParallelism(),
});

/** Options of commands that do work in their own process. */
export function withResources(command: Command): Command {
  const { memory, cores } = defaultResources();
  return addGroup(command, RESOURCE_GROUP, [
    createOption(
      '--memory <size>',
      'memory for the work, in addition to the program itself; for training, the total of all places that are trained in parallel',
      parseBytesOption,
    ).default(memory, 'a quarter of the memory, 2GB at most'),
    createOption('--cores <n>', 'threads and processes used for work', parsePositiveIntegerOption).default(
      cores,
    ),
    createOption(
      '--reserve <size>',
      'free disk space that writes must leave, 0 for none; default: 2 % of the disk, 2GB at most',
      parseBytesOption,
    ),
  ]);
}

/** The option of commands that ingest. */
export function withCloudModel(command: Command): Command {
  return command.addOption(
    createOption(
      '--cloud-model <file>',
      'detect clouds in Sentinel-2 L1C with this LightGBM model of s2cloudless, which you download yourself',
    ),
  );
}

/** Options that select a data folder or a server. */
export function withTarget(command: Command): Command {
  addGroup(withData(command), TARGET_GROUP, [
    createOption(
      '--server <url>',
      'use the server at this address instead of a data folder',
      parseHttpUrlOption,
    ),
    createOption('--token <token>', "the server's token"),
  ]);
  return withCommon(command);
}

export interface FilterOptions extends Omit<FilterParams, 'ids' | 'collections' | 'intersects' | 'query'> {
  collection?: string[];
  /** GeoJSON geometry. */
  intersects?: object;
  filter?: string;
}

/** Splits a list at commas. */
export const splitList = (value: string) => value.split(',').map((one) => one.trim());

/** Splits a list at commas outside of brackets. */
export function splitBands(list: string): string[] {
  const parts = [''];
  let depth = 0;
  for (const letter of list) {
    if (letter === '(') depth++;
    if (letter === ')') depth--;
    if (letter === ',' && depth === 0) parts.push('');
    else parts[parts.length - 1] += letter;
  }
  return parts;
}

/** An option that can be repeated and accepts a list with commas; in the config file it can be a list. */
function collectionsFlag(): Option {
  const option = createOption(
    '--collection <id>',
    'tiles of these collections, separated by commas; can be repeated',
  );
  return option.argParser((value: string, before: unknown) => [
    ...((before as string[] | undefined) ?? []),
    ...splitList(value),
  ]);
}

/** Parses JSON, which is given as a file or as text. Throws the errors of files and of JSON. */
export const parseJsonArgument = (value: string): unknown =>
  parseJson(value.trimStart().startsWith('{') ? value : readFileSync(value, 'utf8'));

/** Parses GeoJSON from a file or a text. Returns a geometry, for a Feature its geometry. */
function parseGeoJsonOption(value: string): object {
  try {
    const document = parseJsonArgument(value);
    const { type, geometry } = (document ?? {}) as { type?: unknown; geometry?: unknown };
    const found = type === 'Feature' ? geometry : document;
    if (typeof found === 'object' && found !== null) return found;
  } catch (error) {
    throw new InvalidArgumentError(`It must be GeoJSON, as a file or as text: ${messageOf(error)}.`);
  }
  throw new InvalidArgumentError('It must be a GeoJSON geometry or Feature.');
}

/** Help text of commands whose default source is `raw`. */
export const RAW_SOURCE_HELP = '\nWithout --source and --filter, only raw tiles are used.';

export function withFilterOptions(command: Command): Command {
  return addGroup(command, FILTER_GROUP, [
    collectionsFlag(),
    createOption('--bbox <w,s,e,n>', 'tiles with data in this box, in degrees'),
    createOption(
      '--intersects <geojson>',
      'tiles with data in this GeoJSON: a file, or the text itself',
      parseGeoJsonOption,
    ).conflicts('bbox'),
    createOption('--geocode <code>', 'tiles of the cell with this geocode'),
    createOption('--recurse', 'with --geocode: also the tiles of all smaller cells inside this cell'),
    createOption(
      '--datetime <a/b>',
      'a year, month, day or time, or a range of these such as 2024-05/2024-07 or ../2024-07-31',
    ),
    createOption('--min-cloud <percent>', 'tiles with at least this percentage of cloud', parseNumberOption),
    createOption('--max-cloud <percent>', 'tiles with at most this percentage of cloud', parseNumberOption),
    createOption(
      '--min-coverage <percent>',
      'tiles with data in at least this percentage of the cell',
      parseNumberOption,
    ),
    createOption(
      '--source <source>',
      'raw, split, filled, coalesced, predicted, cloud-free, or an analysis: pca, mnf, anomaly, match, unmix, classify, cluster, indices, smooth, resample, continuum',
    ),
    createOption('--platform <name>', 'tiles of this platform'),
    createOption(
      '--filter <cql2>',
      `any other condition, for example "eo:cloud_cover < 5 OR scene LIKE 'LC08%'"`,
    ),
  ]);
}

export type JobOptions = TargetOptions & FilterOptions;

/** Options of commands that work on the tiles of a filter. */
export const withJobOptions = (command: Command): Command =>
  withTarget(withResources(withFilterOptions(command)));

/** Options that the API accepts unchanged. */
const SAME_IN_API = [
  ...(['intersects', 'geocode', 'recurse', 'minCloud', 'maxCloud', 'minCoverage'] as const),
  ...(['source', 'platform', 'filter'] as const),
];

/** Converts options to the filter parameters of the API. */
export function toFilterParams(options: FilterOptions): FilterParams {
  const { bbox, datetime, collection } = options;
  const params: FilterParams = {
    collections: collection === undefined ? undefined : [collection].flat(),
    bbox: bbox === undefined ? undefined : parseBbox(String(bbox)),
    // Flags may be days, months and years; the API accepts only times.
    datetime: datetime && writeDatetime(parseDatetime(String(datetime), { dates: 'periods' })),
    ...Object.fromEntries(SAME_IN_API.map((name) => [name, options[name]])),
  };
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined));
}

/** Lists the names itself, so that help does not load src/training. */
export const TRAINING_MODE_NAMES = ['partitioned', 'distributed', 'contained', 'regional'];

/** The option of commands that load a training engine. Lists the names itself, so that help does not load src/engines. */
export const engineOption = (): Option =>
  createOption('--engine <name>', 'use this engine or fail').choices([
    'tfjs-node-gpu',
    'wasm-onednn',
    'wasm',
    'tfjs-node',
  ]);

export interface TrainingOptions {
  epochs?: number;
  patience?: number;
  validationFrom?: string;
  holdOut?: string[];
  history?: 'all' | 'past' | 'none';
  engine?: string;
  /** Memory limit of a process of the contained mode, bytes. */
  placeMemory?: number;
}

/** The inputs of the process `train` that follow from the options. */
export function toTrainingInputs(
  flags: FilterOptions & TrainingOptions,
): TrainingOptions & { filter: FilterParams } {
  const { epochs, patience, validationFrom, holdOut, history, engine, placeMemory } = flags;
  return {
    filter: toFilterParams(flags),
    ...{ epochs, patience, validationFrom, holdOut, history, engine, placeMemory },
  };
}

export function withTrainingOptions(command: Command): Command {
  return addOptions(command, [
    createOption(
      '--epochs <n>',
      'passes over the training patches; default 30, for cloud-removal 12',
      parsePositiveIntegerOption,
    ),
    createOption(
      '--patience <n>',
      'stop a training if the loss on the selection patches has not improved for n epochs; the best epoch is always kept',
      parsePositiveIntegerOption,
    ),
    createOption(
      '--validation-from <time>',
      'hold out dates from this RFC 3339 time or date on; default: the last quarter of the tiles',
      parseTimeOption,
    ),
    createOption(
      '--hold-out <dates>',
      'hold out these days at all places instead, such as 2020-06-30; several with commas',
    ).argParser(appendDays),
    createOption(
      '--history <use>',
      'what a model reads of the other dates of its place: all (the default), those before the date (past), or none; dates within three days never count',
    ).choices(['all', 'past', 'none']),
    engineOption(),
    createOption(
      '--place-memory <size>',
      'with --mode contained: memory limit of each process, 1MB or more; default 1GB, for cloud-removal 2GB',
      parsePlaceMemory,
    ),
  ]);
}

function appendDays(value: string, all: string[] | undefined): string[] {
  const days = appendList(value, all);
  for (const day of days)
    if (!/^\d{4}-\d\d-\d\d$/.test(day) || Number.isNaN(Date.parse(day)))
      throw new InvalidArgumentError('It must be days such as 2020-06-30.');
  return days;
}

/** The minimum of the process `train`. */
const MIN_PLACE_MEMORY_BYTES = 1e6;

function parsePlaceMemory(value: string): number {
  const size = parseBytesOption(value);
  if (size < MIN_PLACE_MEMORY_BYTES) throw new InvalidArgumentError('It must be 1MB or more.');
  return size;
}

/** Parses a comma-separated list, appended to those of earlier flags. */
export const appendList = (value: string, all: string[] | undefined): string[] => [
  ...(all ?? []),
  ...value.split(',').map((part) => part.trim()),
];

const HOST_FORM = 'It must be host, host:port or *.domain';

/** Parses hosts, appended to those of earlier flags. Another text would never match the host of an address, so it is refused. */
function appendHosts(value: string, all: string[] | undefined): string[] {
  const hosts = appendList(value, undefined);
  for (const host of hosts) checkHostForm(host);
  return [...(all ?? []), ...hosts];
}

function checkHostForm(text: string): void {
  const domain = text.startsWith('*.') ? text.slice(2) : undefined;
  const host = domain ?? text;
  const hasForm = /^([^\s/\\?#@:*[\]]+|\[[^\]]+\])(:\d+)?$/.test(host) && URL.canParse(`http://${host}`);
  // Hosts below a domain are allowed at the usual ports only.
  if (hasForm && !(domain !== undefined && /:\d+$/.test(domain))) return;
  const url = /^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const found = URL.canParse(url) && text.includes('/') ? new URL(url).host : '';
  throw new InvalidArgumentError(
    found === '' || found.includes('*') ? `${HOST_FORM}.` : `${HOST_FORM}, here ${found}.`,
  );
}

const hostOptions = new WeakSet<Option>();

/** True for an option whose value in the config file can be a list, of which each text is parsed. */
export const isHostOption = (option: Option): boolean => hostOptions.has(option);

function createHostOption(description: string): Option {
  const option = createOption('--allow-host <host>', description).argParser(appendHosts);
  hostOptions.add(option);
  return option;
}

/** The hosts from which a server fetches. */
export const serverHostOption = (): Option =>
  createHostOption('host from which ingest may fetch scenes: host, host:port or *.domain; can be repeated');

/** The hosts from which a command fetches in addition to all public ones. `when` limits its effect, such as "with --run: ". */
export const allowHostOption = (when = ''): Option =>
  createHostOption(
    `${when}host that may be fetched from although its address is private or it has no TLS: host or host:port; can be repeated`,
  );

export const remoteCredentialsOption = (when = ''): Option =>
  createOption('--remote-credentials <file>', `${when}JSON file with credentials for the hosts of scenes`);
