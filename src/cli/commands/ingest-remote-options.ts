/** Options of `ingest` for scenes of remote STAC catalogs. */
import { InvalidArgumentError, type Option } from 'commander';
import type { Bbox } from '../../grid/index.js';
import type { IngestInputs } from '../../ingest/index.js';
import { isRemoteAddress } from '../../utils/remote-address.js';
import {
  allowHostOption,
  createOption,
  parseNumberOption,
  parsePositiveIntegerOption,
  remoteCredentialsOption,
} from '../options/index.js';

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
  const { readStacItems } = await import('./read-stac-items.js');
  const items = await readStacItems(fromStac, { ...query, bbox: options.bbox as Bbox | undefined }, assets);
  return { ...others, collection: into, stac: { items, ...query, ...(assets && { assets }) } };
}
