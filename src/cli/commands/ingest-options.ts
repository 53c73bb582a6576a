/** Options of `ingest`: how scenes become tiles, and which scenes of remote STAC catalogs to ingest. `subscribe` has some of them. */
import { readFileSync } from 'node:fs';
import { InvalidArgumentError, type Option } from 'commander';
import { messageOf } from '../../errors.js';
import type { Bbox } from '../../grid/index.js';
import type { IngestInputs } from '../../ingest/index.js';
import { parseBbox } from '../../query/index.js';
import { isRemoteAddress } from '../../utils/text.js';
import {
  allowHostOption,
  appendList,
  createOption,
  parseIntegerOption,
  parseNumberOption,
  parsePositiveIntegerOption,
  remoteCredentialsOption,
} from '../options.js';

const numberOrNan = (value: string): number | 'nan' =>
  value.trim().toLowerCase() === 'nan' ? 'nan' : parseNumberOption(value);

/** Parses "red=3,nir=4", or a list of names for `--from-stac`. */
function bandNames(value: string): Record<string, number> | string[] {
  if (!value.includes('=')) return appendList(value, undefined);
  const pairs = value.split(',').map((pair) => /^([\w.-]+)=(\d+)$/.exec(pair.trim()));
  if (pairs.includes(null))
    throw new InvalidArgumentError('It must be a list of names with band numbers, such as red=3,nir=4.');
  const names = Object.fromEntries(pairs.map((match) => [match?.[1], Number(match?.[2])]));
  if (Object.keys(names).length < pairs.length) throw new InvalidArgumentError('A name occurs twice.');
  return names;
}

function boxOption(value: string): Bbox {
  try {
    return parseBbox(value);
  } catch (error) {
    throw new InvalidArgumentError(`${messageOf(error)}.`);
  }
}

/** Parses "400-2500", "400,410,420", or the path of a file with a number for each band. Returns nanometres. */
function wavelengthList(value: string): number[] {
  const range = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(value.trim());
  if (range) return [Number(range[1]), Number(range[2])];
  const text = /^[\d.,\s]+$/.test(value) ? value : readText(value);
  const numbers = text.split(/[\s,;]+/).filter((item) => item !== '');
  if (numbers.length < 2 || !numbers.every((item) => Number.isFinite(Number(item))))
    throw new InvalidArgumentError(
      'It must be wavelengths in nanometres, such as 400-2500, or a file of them.',
    );
  return numbers.map(Number);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new InvalidArgumentError(`The file cannot be read: ${messageOf(error)}.`);
  }
}

/** The options of the process. */
export function ingestOptions(): Option[] {
  return [
    createOption(
      '--collection <id>',
      'collection of the tiles (lower-case letters, digits, - and .); known products have their own; with --from-stac: collections of the archive to search, separated by commas',
    ),
    createOption('--grid <grid>', 'kind of cells').choices(['geohash', 'quadtile']),
    createOption(
      '--precision <n>',
      'length of the geocodes; by default it is chosen so that cells are at least 128 pixels wide',
      parseIntegerOption,
    ),
    createOption(
      '--bbox <w,s,e,n>',
      'only make the cells that meet this box, in degrees; each is made as a whole, and scenes outside of the box are skipped',
      boxOption,
    ),
    createOption('--id <id>', 'scene id of a raster that is not a known product'),
    createOption(
      '--datetime <time>',
      'acquisition time: 2024-06-01T10:30:00Z, 2024-06-01, 2024-06, 2024, or start/end; with --from-stac: dates to search, also with an open end, such as 2024-05/..',
    ),
    createOption(
      '--bands <names>',
      'names of bands, such as red=3,nir=4; with --from-stac, the bands to read, such as red,nir,scl',
      bandNames,
    ),
    createOption('--nodata <value>', 'stored value that means no data, a number or nan', numberOrNan),
    createOption('--scale <factor>', 'physical value = stored * scale + offset', parseNumberOption),
    createOption('--offset <value>', 'see --scale', parseNumberOption),
    createOption('--platform <name>', 'name of the satellite or aircraft'),
    createOption(
      '--mask-band <n>',
      'band whose value is 0 for clear pixels and not 0 for cloudy pixels',
      parsePositiveIntegerOption,
    ),

    createOption(
      '--position <place>',
      'position of a raster without georeferencing: EPSG:CODE,ULX,ULY,LRX,LRY, outer corners as for gdal_translate -a_ullr',
    ),
    createOption(
      '--wavelengths <nm>',
      'wavelengths of the bands: a file with a number for each band, or the first and last one, such as 400-2500',
      wavelengthList,
    ),
    createOption(
      '--name-pattern <pattern>',
      'read facts from the names of the files: {time:%Y-%m-%d}, {band}, {tile}, {platform}, and {*} for ignored text, such as {platform}_{*}_{tile}_{band}_{time:%Y%m%d}.tif',
    ),
    createOption('--layer <name>', 'name of the array to ingest from a MATLAB file with several arrays'),
    createOption(
      '--cloud-test',
      'detect cloud by reflectance if the product has no cloud mask (needs six bands, which it finds by their names)',
    ),
    createOption(
      '--compress <method>',
      'compress the tiles of imaging spectrometers, which makes them a quarter smaller, and slower to read',
    ).choices(['deflate']),
    createOption(
      '--dry-run',
      'only list the tiles that the ingest would create; some of these tiles may turn out to have no data',
    ),
  ];
}

export interface RemoteFlags {
  fromStac?: string;
  into?: string;
  filter?: string;
  maxCloud?: number;
  limit?: number;
  yes?: boolean;
  allowHost?: string[];
  remoteCredentials?: string;
}

function percentOption(value: string): number {
  const percent = parseNumberOption(value);
  if (percent < 0 || percent > 100) throw new InvalidArgumentError('It must be a percentage from 0 to 100.');
  return percent;
}

/** Begins the help of options that need `--from-stac`. */
export const WITH_STAC = 'with --from-stac: ';

export function remoteOptions(): Option[] {
  return [
    createOption(
      '--from-stac <url>',
      'ingest scenes of a STAC API, a static catalog, an ItemCollection or an Item, at a URL or in a JSON file; --collection, --datetime and --bands then select scenes and assets',
    ).conflicts(['watch', 'upload', 'namePattern']),
    createOption('--into <id>', `${WITH_STAC}collection of the tiles, by default that of the Items`),
    createOption('--filter <cql2>', `${WITH_STAC}CQL2 text for the search`),
    createOption(
      '--max-cloud <percent>',
      `${WITH_STAC}skip Items with more cloud (property eo:cloud_cover)`,
      percentOption,
    ),
    createOption('--limit <n>', `${WITH_STAC}number of Items at most`, parsePositiveIntegerOption),
    createOption(
      '--yes',
      `${WITH_STAC}ingest all Items of a search, even if they are more than 1,000`,
    ).conflicts('limit'),
    allowHostOption(),
    remoteCredentialsOption(),
  ];
}

/**
 * The inputs of the job: with `--from-stac`, some flags describe the search. Calls `fail` for flags that do not fit together. Throws
 * TW_CLI_NOT_ITEMS for a file without Items that match.
 */
export async function remoteInputs(
  flags: RemoteFlags,
  options: Record<string, unknown>,
  fail: (text: string) => never,
): Promise<Partial<IngestInputs>> {
  const { fromStac, into, filter, maxCloud, limit, yes } = flags;
  const { bands } = options;
  if (fromStac === undefined) {
    const unused = Object.entries({ into, filter, 'max-cloud': maxCloud, limit, yes }).find(
      ([, value]) => value !== undefined,
    );
    if (unused) fail(`error: option --${unused[0]} needs --from-stac`);
    if (Array.isArray(bands)) fail('error: option --bands needs numbers, such as red=3,nir=4');
    return options;
  }
  if (bands !== undefined && !Array.isArray(bands))
    fail('error: with --from-stac, option --bands is a list of names, such as red,nir,scl');
  const { collection, datetime, bands: _, ...others } = options;
  const query = {
    ...(collection !== undefined && { collections: String(collection).split(',') }),
    ...(datetime !== undefined && { datetime: String(datetime) }),
    ...{ maxCloud, limit },
    ...(yes && { all: true }),
  };
  const assets = bands as string[] | undefined;
  if (isRemoteAddress(fromStac))
    return {
      ...others,
      collection: into,
      stac: { url: fromStac, ...query, filter, ...(assets && { assets }) },
    };
  if (filter !== undefined)
    fail('error: --filter needs the URL of a STAC API; use --max-cloud, --datetime and --bbox for a file');
  // Few commands read such a file.
  const { readStacItems } = await import('./stac-items.js');
  const items = await readStacItems(fromStac, { ...query, bbox: options.bbox as Bbox | undefined }, assets);
  return { ...others, collection: into, stac: { items, ...query, ...(assets && { assets }) } };
}
