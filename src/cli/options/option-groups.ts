/** Flags that several commands share. Every flag is also an environment variable TILEWRIGHT_* and a key of the config file. */
import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { messageOf } from '../../errors.js';
import { type FilterParams, parseBbox, parseDatetime, writeDatetime } from '../../query/index.js';

/** An option with its environment variable: `--min-cloud` is TILEWRIGHT_MIN_CLOUD. */
export function createOption(flags: string, description: string, parse?: (value: string) => unknown): Option {
  const option = new Option(flags, description);
  if (parse) option.argParser(parse);
  return option.env(`TILEWRIGHT_${option.name().toUpperCase().replaceAll('-', '_')}`);
}

/** A decimal number. `Number` alone also reads hexadecimal, octal and binary ones. */
export function parseNumberOption(value: string): number {
  const parsed = /^\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*$/i.test(value) ? Number(value) : NaN;
  if (!Number.isFinite(parsed)) throw new InvalidArgumentError('It must be a number.');
  return parsed;
}

export function parseIntegerOption(value: string): number {
  const parsed = parseNumberOption(value);
  if (!Number.isInteger(parsed)) throw new InvalidArgumentError('It must be a whole number.');
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

/** The address of a server. */
export function parseHttpUrlOption(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw new InvalidArgumentError('It must be an address such as http://127.0.0.1:8080.');
  return value;
}

/** A time, or the start of a day, month or year; returned as RFC 3339. */
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

/** "2GB", "512MB", "1000000": bytes, in powers of ten. */
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

/** Headings of the help; flags of a command alone stand before them. */
const FILTER_GROUP = 'Which tiles:';
const TARGET_GROUP = 'Where:';
const RESOURCE_GROUP = 'Resources:';
const OUTPUT_GROUP = 'Output:';

function addGroup(command: Command, heading: string, options: Option[]): Command {
  for (const option of options) command.addOption(option.helpGroup(heading));
  return command;
}

export function withCommon(command: Command): Command {
  addGroup(command, TARGET_GROUP, [
    createOption('--config <file>', 'JSON file with flags as keys, such as {"data": "/srv/tiles"}'),
  ]);
  return addGroup(command, OUTPUT_GROUP, [
    createOption('--format <format>', 'what to print on stdout').choices(['text', 'json']).default('text'),
  ]);
}

export function withData(command: Command): Command {
  return addGroup(command, TARGET_GROUP, [
    createOption('--data <dir>', 'data folder').default('./tilewright-data'),
  ]);
}

/** More gains nothing: all rows of a Sentinel-2 scene are in memory at once then, and each file is opened once. */
const MAX_DEFAULT_MEMORY_BYTES = 2e9;

export const defaultResources = (): ResourceOptions => ({
  memory: Math.min(MAX_DEFAULT_MEMORY_BYTES, totalmem() / 4),
  cores: availableParallelism(),
});

/** Of commands that do work in their own process. */
export function withResources(command: Command): Command {
  const { memory, cores } = defaultResources();
  return addGroup(command, RESOURCE_GROUP, [
    createOption(
      '--memory <size>',
      'memory that the work may take beside the program itself; of training, all places side by side',
      parseBytesOption,
    ).default(memory, 'a quarter of the machine, 2GB at most'),
    createOption('--cores <n>', 'threads and processes used for work', parsePositiveIntegerOption).default(
      cores,
    ),
    createOption(
      '--reserve <size>',
      'free space of the disk below which nothing is written, 0 for none; by default 2 % of it, 2GB at most',
      parseBytesOption,
    ),
  ]);
}

/** Of commands that ingest. */
export function withCloudModel(command: Command): Command {
  return command.addOption(
    createOption(
      '--cloud-model <file>',
      'tell the cloud of Sentinel-2 L1C by this LightGBM model of s2cloudless; the file is yours to fetch',
    ),
  );
}

/** Where a command works: a folder in this process, or a server. */
export function withTarget(command: Command): Command {
  addGroup(withData(command), TARGET_GROUP, [
    createOption(
      '--server <url>',
      'use the server at this address in place of a data folder',
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

/** What a list with commas names. */
export const splitList = (value: string) => value.split(',').map((one) => one.trim());

/** Given again, or a list with commas, or both; in the config file also a list. */
function collectionsFlag(): Option {
  const option = createOption('--collection <id>', 'tiles of these collections: with commas, or given again');
  return option.argParser((value: string, before: unknown) => [
    ...((before as string[] | undefined) ?? []),
    ...splitList(value),
  ]);
}

/** A geometry, or the one of a Feature; of a file or of text. */
export function parseGeoJsonOption(value: string): object {
  try {
    const text = value.trimStart().startsWith('{') ? value : readFileSync(value, 'utf8');
    const document: unknown = JSON.parse(text);
    const { type, geometry } = (document ?? {}) as { type?: unknown; geometry?: unknown };
    const found = type === 'Feature' ? geometry : document;
    if (typeof found === 'object' && found !== null) return found;
  } catch (error) {
    throw new InvalidArgumentError(`It must be GeoJSON, as a file or as text: ${messageOf(error)}`);
  }
  throw new InvalidArgumentError('It must be a GeoJSON geometry or Feature.');
}

/** For the help of commands that take what is asked for, and else not what they have made. */
export const RAW_SOURCE_HELP = '\nWithout --source and --filter, raw tiles are taken alone.';

export function withFilterOptions(command: Command): Command {
  return addGroup(command, FILTER_GROUP, [
    collectionsFlag(),
    createOption('--bbox <w,s,e,n>', 'tiles that touch this box, in degrees'),
    createOption(
      '--intersects <geojson>',
      'tiles that touch this GeoJSON: a file, or the text itself',
      parseGeoJsonOption,
    ).conflicts('bbox'),
    createOption('--geocode <code>', 'tiles of this cell'),
    createOption('--recurse', 'with --geocode: also of every cell below it'),
    createOption(
      '--datetime <a/b>',
      'a year, month, day or time, or a range of these such as 2024-05/2024-07 or ../2024-07-31',
    ),
    createOption('--min-cloud <percent>', 'at least this much cloud', parseNumberOption),
    createOption('--max-cloud <percent>', 'at most this much cloud', parseNumberOption),
    createOption('--min-coverage <percent>', 'at least this much of the cell holds data', parseNumberOption),
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

/** The filter of a command's options, as the API takes it. */
export function toFilterParams(options: FilterOptions): FilterParams {
  const {
    bbox,
    intersects,
    datetime,
    collection,
    geocode,
    recurse,
    minCloud,
    maxCloud,
    minCoverage,
    source,
    platform,
  } = options;
  const params: FilterParams = {
    collections: collection === undefined ? undefined : [collection].flat(),
    intersects,
    bbox: bbox === undefined ? undefined : parseBbox(String(bbox)),
    // People write days, months and years; the API takes times alone.
    datetime: datetime && writeDatetime(parseDatetime(String(datetime), { dates: 'periods' })),
    geocode,
    recurse,
    minCloud,
    maxCloud,
    minCoverage,
    source,
    platform,
    filter: options.filter,
  };
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined));
}

/** Of a flag that is on or off, where it is a variable or a key. */
function parseBooleanOption(value: string): boolean {
  if (['true', '1'].includes(value)) return true;
  if (['false', '0', ''].includes(value)) return false;
  throw new InvalidArgumentError('It must be true or false.');
}

/** Takes what the environment says of flags that are on or off: commander takes any word for on. */
export function applyEnvironment(command: Command): void {
  for (const option of command.options) {
    const name = option.attributeName();
    if (!option.isBoolean() || command.getOptionValueSource(name) !== 'env') continue;
    const value = process.env[option.envVar!]!;
    try {
      command.setOptionValueWithSource(name, parseBooleanOption(value), 'env');
    } catch (error) {
      command.error(`error: ${option.envVar} is "${value}". ${messageOf(error)}`);
    }
  }
}

/**
 * Takes keys of the config file for flags that neither the command line nor the environment gives. A key that none of `all`
 * commands knows is a mistake and is refused.
 */
export async function applyConfigFile(command: Command, all: () => Promise<Command[]>): Promise<void> {
  const file = command.getOptionValue('config') as string | undefined;
  if (!file) return;
  let config: Record<string, unknown> = {};
  try {
    config = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    command.error(`error: the config file ${file} cannot be read: ${messageOf(error)}`);
  }
  const withSubcommands = (await all()).flatMap((one) => [one, ...one.commands]);
  const known = new Set(withSubcommands.flatMap(({ options }) => options.map((option) => option.name())));
  for (const [key, value] of Object.entries(config)) {
    if (!known.has(key)) command.error(`error: the config file ${file} has the unknown key "${key}"`);
    const option = command.options.find((one) => one.name() === key);
    if (!option) continue;
    const name = option.attributeName();
    const source = command.getOptionValueSource(name);
    if (source !== undefined && source !== 'default') continue;
    try {
      const parse = option.isBoolean() ? parseBooleanOption : option.parseArg;
      const parsed = parse && typeof value !== 'object' ? parse(String(value), undefined) : value;
      command.setOptionValueWithSource(name, parsed, 'config');
    } catch (error) {
      command.error(
        `error: the config file ${file} has "${key}": ${JSON.stringify(value)}. ${messageOf(error)}`,
      );
    }
  }
}
