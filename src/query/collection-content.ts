/** What the tiles of a collection are: `summaries` and `item_assets` of its STAC document. */
import type { ColumnIndex } from '../storage/index.js';
import { onceAChange } from './once-a-change.js';
import type { StacCollection } from './stac-collection.js';
import type { GroupAsset, StacAsset, StacItem } from './stac-item.js';

/** Percent, both included. */
interface Range {
  minimum: number;
  maximum: number;
}

export interface CollectionContent {
  platforms: string[];
  sources: string[];
  /** Undefined where no tile's cloud is known. */
  cloudCover: Range | undefined;
  coverage: Range;
  /** One tile of each platform and source. */
  samples: string[];
}

/** Rows of one collection, platform and source. */
interface Kind {
  row: number;
  cloud: Range;
  coverage: Range;
}

const nothing = (): Range => ({ minimum: Infinity, maximum: -Infinity });

/** The contents of the collections that have tiles, by their ids, from the index in one pass after each change of it. */
export const collectionContents = onceAChange(findContents);

function findContents(index: ColumnIndex): ReadonlyMap<string, CollectionContent> {
  const { collection, platform, source, cloud, coverage } = index.columns;
  const kinds = new Map<number, Kind>();
  let last = -1;
  let kind: Kind | undefined;
  index.forEach({}, (row) => {
    const key = (collection[row]! * 2 ** 16 + platform[row]!) * 2 ** 8 + source[row]!;
    if (key !== last) {
      kind = kinds.get(key) ?? { row, cloud: nothing(), coverage: nothing() };
      kinds.set(key, kind);
      last = key;
    }
    // An unknown cloud cover is NaN, which is neither below nor above.
    widen(kind!.cloud, cloud[row]!);
    widen(kind!.coverage, coverage[row]!);
  });
  const byCollection = new Map<number, Kind[]>();
  for (const one of kinds.values()) {
    const code = collection[one.row]!;
    byCollection.set(code, [...(byCollection.get(code) ?? []), one]);
  }
  const textOf = (names: readonly (string | null)[], codes: ArrayLike<number>, of: Kind[]) =>
    [...new Set(of.flatMap(({ row }) => names[codes[row]!] ?? []))].sort();
  return new Map(
    Array.from(byCollection, ([code, of]) => {
      const cloudCover = outward(of.map((one) => one.cloud));
      const content: CollectionContent = {
        platforms: textOf(index.platforms.names, platform, of),
        sources: textOf(index.sources.names, source, of),
        cloudCover: cloudCover.minimum > cloudCover.maximum ? undefined : cloudCover,
        coverage: outward(of.map((one) => one.coverage)),
        samples: of.map(({ row }) => index.idOf(row)),
      };
      return [index.collections.names[code]!, content];
    }),
  );
}

function widen(range: Range, value: number): void {
  if (value < range.minimum) range.minimum = value;
  if (value > range.maximum) range.maximum = value;
}

/** All ranges in one, in hundredths: the index holds single precision, and no tile may be outside. */
function outward(ranges: Range[]): Range {
  const minimum = Math.min(...ranges.map((range) => range.minimum));
  const maximum = Math.max(...ranges.map((range) => range.maximum));
  return {
    minimum: Math.max(0, Math.floor((minimum - 1e-5) * 100) / 100),
    maximum: Math.min(100, Math.ceil((maximum + 1e-5) * 100) / 100),
  };
}

/** The item assets extension, which STAC 1.1 made part of collections. */
const ITEM_ASSETS = 'https://stac-extensions.github.io/item-assets/v1.0.0/schema.json';
/** Extensions of Items whose members describe assets of any tile. */
const OF_ASSETS = /\/(eo|raster)\/v/;

export type DescribedCollection = Omit<StacCollection, 'summaries'> & {
  /** Lists of values, and ranges. */
  summaries: Record<string, unknown>;
  item_assets: Record<string, object>;
};

/** The document of a collection with what its tiles are; `items` are its samples. */
export function withContent(
  document: StacCollection,
  { platforms, sources, cloudCover, coverage }: CollectionContent,
  items: StacItem[],
): DescribedCollection {
  const extensions = new Set([ITEM_ASSETS, ...items.flatMap(({ stac_extensions }) => stac_extensions)]);
  const known = [...extensions].filter((one) => one === ITEM_ASSETS || OF_ASSETS.test(one));
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

/** What an asset is in every tile; that of a band group has bands. */
type CommonAsset = Omit<StacAsset, 'href' | 'title'> & { title?: string } & Partial<Bands>;
type Bands = Pick<GroupAsset, 'eo:bands' | 'raster:bands'>;

/** What the assets of some Items have in common; a band that any of them has is named. */
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

/** Without statistics, which are those of one tile. */
function bandsOf({ 'eo:bands': eo, 'raster:bands': raster }: GroupAsset): Bands {
  const encodings = raster.map(({ statistics: _s, valid_percent: _v, ...encoding }) => encoding);
  return { 'eo:bands': eo, 'raster:bands': encodings };
}

function addBands(known: CommonAsset, { 'eo:bands': eo = [], 'raster:bands': raster = [] }: Partial<Bands>) {
  const names = new Set(known['eo:bands']?.map(({ name }) => name));
  for (const [i, band] of eo.entries()) {
    if (names.has(band['name'])) continue;
    // The title lists the bands of one tile.
    delete known.title;
    known['eo:bands'] = [...(known['eo:bands'] ?? []), band];
    known['raster:bands'] = [...(known['raster:bands'] ?? []), raster[i]!];
  }
}
