/** Collections as STAC 1.0.0 Collections, and the summaries of their tiles. */

import type { OwnerShare } from '../../dht/index.js';
import { type Bbox, type GridName, gridByName } from '../../grid/index.js';
import type { CollectionRecord, ColumnIndex, IndexRun, TileRecord } from '../../storage/index.js';
import { compareText } from '../../utils/text.js';
import { memoizePerVersion } from '../memoize.js';
import { visitRuns } from '../search.js';
import type { Extent } from './extents.js';
import {
  attributionFor,
  extensionUrl,
  type GroupAsset,
  isoTime,
  licenseLinks,
  type StacAsset,
  type StacItem,
  type StacLink,
  stacUrls,
} from './items.js';

type StacCollection = ReturnType<typeof toStacCollection>;

/** Links to web maps: relations `tilejson` and `xyz`. */
const WEB_MAP_LINKS = extensionUrl('web-map-links/v1.2.0');

/** A collection as a STAC Collection. Without tiles, its extent is the entire world, open at both ends. */
export function toStacCollection(
  collection: CollectionRecord,
  extent: Omit<Extent, 'longitudes'> | undefined,
  baseUrl: string,
) {
  const url = stacUrls(baseUrl);
  const self = url.collection(collection.id);
  const { bbox, start, end } = extent ?? {
    bbox: [-180, -90, 180, 90] satisfies Bbox,
    start: null,
    end: null,
  };
  const times: [start: string | null, end: string | null] = [
    start === null ? null : isoTime(start),
    end === null ? null : isoTime(end),
  ];
  const attribution = attributionFor(collection, start, end);
  return {
    type: 'Collection',
    stac_version: '1.0.0',
    stac_extensions: extent ? [WEB_MAP_LINKS] : [],
    id: collection.id,
    title: collection.title,
    description: `${collection.title}, as tiles of ${collection.grid} precision ${collection.precision}`,
    license: collection.license,
    extent: { spatial: { bbox: [bbox] }, temporal: { interval: [times] } },
    summaries: { 'proj:epsg': [gridByName(collection.grid).epsg] },
    // Type of its items in OGC API Features.
    itemType: 'feature',
    grid: collection.grid,
    precision: collection.precision,
    links: [
      { rel: 'self', href: self, type: 'application/json' },
      { rel: 'parent', href: url.root, type: 'application/json' },
      { rel: 'root', href: url.root, type: 'application/json' },
      { rel: 'items', href: `${self}/items`, type: 'application/geo+json' },
      {
        rel: 'http://www.opengis.net/def/rel/ogc/1.0/queryables',
        href: `${self}/queryables`,
        type: 'application/schema+json',
      },
      { rel: 'aggregate', href: `${self}/aggregate`, type: 'application/json', title: 'Counts of a search' },
      {
        rel: 'aggregations',
        href: `${self}/aggregations`,
        type: 'application/json',
        title: 'Available counts',
      },
      // A collection without tiles has no map.
      ...(extent ? mapLinks(url.xyz(collection.id)) : []),
      ...licenseLinks(collection),
    ],
    ...(attribution !== undefined && { attribution }),
    ...(collection.pixelSizes && { pixel_sizes: sizesOf(collection.pixelSizes) }),
    ...(collection.providers && { providers: collection.providers }),
  };
}

/** The pixel sizes of its scenes: ground metres of the longer side. */
const sizesOf = (lists: NonNullable<CollectionRecord['pixelSizes']>) =>
  [...new Set(lists.flat().map(({ x, y }) => Math.max(x, y)))].sort((a, b) => a - b);

function mapLinks(xyz: string): StacLink[] {
  return [
    { rel: 'tilejson', href: `${xyz}/tilejson.json`, type: 'application/json', title: 'TileJSON' },
    { rel: 'xyz', href: `${xyz}/{z}/{x}/{y}.png`, type: 'image/png', title: 'map tiles' },
  ];
}

/** Percent, ends included. */
interface Range {
  minimum: number;
  maximum: number;
}

/** One tile of each platform and source: the first by cell, then by time, then by id. */
interface Sample {
  platform: string | null;
  source: string;
  grid: GridName;
  geocode: string;
  start: number;
  id: string;
}

/** Summaries of the tiles of a collection, for `summaries` and `item_assets` of its STAC document. */
export interface CollectionSummaries {
  platforms: string[];
  sources: string[];
  /** Undefined if the cloud cover of no tile is known. */
  cloudCover?: Range;
  coverage: Range;
  samples: Sample[];
}

/** Summaries with the records of the samples. */
export type CollectionSummariesWithTiles = Omit<CollectionSummaries, 'samples'> & { tiles: TileRecord[] };

/** The rows of one collection, platform and source. */
interface SampleKind {
  /** Row of the sample. */
  row: number;
  cloud: Range;
  coverage: Range;
}

const emptyRange = (): Range => ({ minimum: Infinity, maximum: -Infinity });

/** The summaries of all collections with tiles, by id. Computed in one pass over the index after each change of it. */
export const collectionSummaries = memoizePerVersion(computeSummaries);

async function computeSummaries(
  index: ColumnIndex,
  { only }: OwnerShare,
): Promise<ReadonlyMap<string, CollectionSummaries>> {
  return mergeSummaries((await visitRuns(index, { where: only }, summariseRun)).flat());
}

/** Summaries of the rows of one run: one for each collection, platform and source. */
function summariseRun(rows: IndexRun) {
  const { collection, platform, source, cloud, coverage, grid, key, start } = rows.columns;
  const isBefore = (a: number, b: number) => {
    const difference = rows.compareCells(a, b);
    return difference < 0 || (difference === 0 && rows.idOf(a) < rows.idOf(b));
  };
  const [platforms, sources] = [rows.platforms.names.length, rows.sources.names.length];
  const kinds = new Map<number, SampleKind>();
  let last = -1;
  let kind: SampleKind | undefined;
  const add = (row: number) => {
    const code = (collection[row]! * platforms + platform[row]!) * sources + source[row]!;
    if (code !== last) {
      kind = kinds.get(code) ?? { row, cloud: emptyRange(), coverage: emptyRange() };
      kinds.set(code, kind);
      last = code;
    }
    // In a sorted run, no later row comes before the sample.
    const mayBeBefore = key[row] <= key[kind!.row] || grid[row] < grid[kind!.row];
    if (mayBeBefore && isBefore(row, kind!.row)) kind!.row = row;
    // An unknown cloud cover is NaN, which does not extend the range.
    extendRange(kind!.cloud, cloud[row]!);
    extendRange(kind!.coverage, coverage[row]!);
  };
  const result = () =>
    Array.from(kinds.values(), (one) => {
      const { row } = one;
      const sample: Sample = {
        platform: rows.platforms.names[platform[row]!]!,
        source: rows.sources.names[source[row]!]!,
        ...rows.cellOf(row),
        start: start[row]!,
        id: rows.idOf(row),
      };
      const summary: CollectionSummaries = {
        platforms: sample.platform === null ? [] : [sample.platform],
        sources: [sample.source],
        ...(one.cloud.minimum <= one.cloud.maximum && { cloudCover: roundOutward(one.cloud) }),
        coverage: roundOutward(one.coverage),
        samples: [sample],
      };
      return new Map([[rows.collections.names[collection[row]!]!, summary]]);
    });
  return { add, result };
}

/** Merges the summaries of several nodes or runs. */
export function mergeSummaries(
  parts: ReadonlyMap<string, CollectionSummaries>[],
): ReadonlyMap<string, CollectionSummaries> {
  const merged = new Map<string, CollectionSummaries>();
  for (const [id, summary] of parts.flatMap((part) => [...part])) {
    const known = merged.get(id);
    merged.set(id, known ? mergeCollection(known, summary) : summary);
  }
  return merged;
}

function mergeCollection(a: CollectionSummaries, b: CollectionSummaries): CollectionSummaries {
  const cloudCover =
    a.cloudCover && b.cloudCover ? unionRange(a.cloudCover, b.cloudCover) : (a.cloudCover ?? b.cloudCover);
  const samples = new Map<string, Sample>();
  // The first sample of each platform and source.
  for (const sample of [...a.samples, ...b.samples].sort(compareSamples)) {
    const kind = JSON.stringify([sample.platform, sample.source]);
    if (!samples.has(kind)) samples.set(kind, sample);
  }
  return {
    platforms: [...new Set([...a.platforms, ...b.platforms])].sort(),
    sources: [...new Set([...a.sources, ...b.sources])].sort(),
    ...(cloudCover && { cloudCover }),
    coverage: unionRange(a.coverage, b.coverage),
    samples: [...samples.values()],
  };
}

/** Orders samples by platform, those without one first, then by source, cell, time and id. */
function compareSamples(a: Sample, b: Sample): number {
  return (
    compareText(a.platform ?? '', b.platform ?? '') ||
    compareText(a.source, b.source) ||
    compareText(a.grid, b.grid) ||
    compareText(a.geocode, b.geocode) ||
    a.start - b.start ||
    compareText(a.id, b.id)
  );
}

const unionRange = (a: Range, b: Range): Range => ({
  minimum: Math.min(a.minimum, b.minimum),
  maximum: Math.max(a.maximum, b.maximum),
});

function extendRange(range: Range, value: number): void {
  if (value < range.minimum) range.minimum = value;
  if (value > range.maximum) range.maximum = value;
}

/** Rounds to hundredths. The index has single precision, and no tile may be outside of the range. */
function roundOutward({ minimum, maximum }: Range): Range {
  return {
    minimum: Math.max(0, Math.floor((minimum - 1e-5) * 100) / 100),
    maximum: Math.min(100, Math.ceil((maximum + 1e-5) * 100) / 100),
  };
}

/** The item assets extension, which became part of collections in STAC 1.1. */
const ITEM_ASSETS = 'https://stac-extensions.github.io/item-assets/v1.0.0/schema.json';
/** Extensions of Items whose members describe assets of any tile. */
const ASSET_EXTENSIONS = /\/(eo|raster)\/v/;

/** The document of a collection with the summaries of its tiles; `items` are the samples. */
export function withSummaries(
  document: StacCollection,
  { platforms, sources, cloudCover, coverage }: CollectionSummariesWithTiles,
  items: StacItem[],
) {
  const extensions = new Set([ITEM_ASSETS, ...items.flatMap(({ stac_extensions }) => stac_extensions)]);
  const known = [...extensions].filter((one) => one === ITEM_ASSETS || ASSET_EXTENSIONS.test(one));
  return {
    ...document,
    stac_extensions: [...new Set([...document.stac_extensions, ...known])],
    summaries: {
      ...document.summaries,
      ...(platforms.length > 0 && { platform: platforms }),
      source: sources,
      ...(cloudCover && { 'eo:cloud_cover': cloudCover }),
      pixel_coverage: coverage,
    },
    item_assets: itemAssets(items),
  };
}

/** The common part of an asset of all tiles. Assets of band groups have bands. */
type CommonAsset = Omit<StacAsset, 'href' | 'title'> & { title?: string } & Partial<Bands>;
type Bands = Omit<GroupAsset, keyof StacAsset | 'proj:shape' | 'proj:transform'>;

/** The common parts of the assets of some Items, with the bands of all of them. */
function itemAssets(items: StacItem[]): Record<string, CommonAsset> {
  const common: Record<string, CommonAsset> = {};
  for (const { assets } of items)
    for (const [key, asset] of Object.entries(assets)) {
      const { type, title, roles } = asset;
      const bands = 'eo:bands' in asset ? bandsOf(asset) : {};
      const known = common[key];
      if (known) addBands(known, bands);
      else common[key] = { type, title, roles, ...bands };
    }
  return common;
}

/** The members of bands, without the statistics, which differ from tile to tile. */
function bandsOf({ 'raster:bands': raster, ...asset }: GroupAsset): Bands {
  const {
    href: _h,
    type: _t,
    title: _n,
    roles: _r,
    'proj:shape': _s,
    'proj:transform': _p,
    ...bands
  } = asset;
  const encodings = raster?.map(({ statistics: _s, valid_percent: _v, ...encoding }) => encoding);
  return { ...bands, ...(encodings && { 'raster:bands': encodings }) };
}

function addBands(known: CommonAsset, { 'eo:bands': eo = [], 'raster:bands': raster = [] }: Partial<Bands>) {
  const names = new Set(known['eo:bands']?.map(({ name }) => name));
  for (const [i, band] of eo.entries()) {
    if (names.has(band['name'])) continue;
    // The title would list only the bands of one tile.
    delete known.title;
    known['eo:bands'] = [...(known['eo:bands'] ?? []), band];
    if (raster[i]) known['raster:bands'] = [...(known['raster:bands'] ?? []), raster[i]];
  }
}
