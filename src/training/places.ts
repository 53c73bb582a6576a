/** Places to train on: one cell of one collection with all of its dates. */
import type { GridName } from '../geocode/index.js';
import type { GroupRecord, Storage, TileRecord } from '../storage/index.js';
import { counted } from './counted.js';
import { type BandName, bandsOf, type ModelSpec } from './models/spec.js';
import type { BandFile, DatePair, PlaceDate } from './place-dates.js';
import { priorDates } from './prior.js';

export interface Place {
  collection: string;
  grid: GridName;
  geocode: string;
  /** From the earliest to the latest. */
  tiles: TileRecord[];
}

/** Names a place among all others. */
export const placeKey = ({
  collection,
  grid,
  geocode,
}: Pick<Place, 'collection' | 'grid' | 'geocode'>): string => `${collection} ${grid} ${geocode}`;

export function groupByPlace(tiles: TileRecord[]): Place[] {
  const places = new Map<string, Place>();
  for (const tile of tiles) {
    const { collection, grid, geocode } = tile;
    const key = placeKey(tile);
    const place = places.get(key) ?? { collection, grid, geocode, tiles: [] };
    place.tiles.push(tile);
    places.set(key, place);
  }
  for (const place of places.values())
    place.tiles.sort((a, b) => a.start - b.start || (a.id < b.id ? -1 : 1));
  return [...places.values()].sort((a, b) => (a.geocode < b.geocode ? -1 : a.geocode > b.geocode ? 1 : 0));
}

/** Names that a band may have in a group; the first that it has is taken. */
const COMMON_NAMES: Record<BandName, string[]> = {
  red: ['red'],
  green: ['green'],
  blue: ['blue'],
  nir: ['nir', 'nir08'],
  swir16: ['swir16'],
};

/** A clear date is paired with the nearest cloudy one, at most so far away, ms. */
const LONGEST_DISTANCE = 30 * 86_400_000;
/** Percent of cloud that a cloudy date has, and pixel coverage that both have. */
const CLOUDY = { least: 5, most: 60 };
const LEAST_COVERAGE = 95;

/** The files that a model is trained on, and pairs of them where it needs pairs; or why there are none. */
export function filesOf(
  storage: Pick<Storage, 'tilePath'>,
  spec: ModelSpec,
  { tiles }: Place,
): { dates: PlaceDate[]; pairs?: DatePair[] } | { skipped: string } {
  const bands = bandsOf(spec);
  const fit = tiles.flatMap((tile) => {
    const files = dateFiles(storage, bands, tile);
    return files ? [{ tile, files }] : [];
  });
  if (fit.length === 0) return { skipped: `no date holds ${bands.join(', ')}` };
  const dates = fit.map(({ files }) => files);
  if (spec.target.kind !== 'clear') return { dates };
  const pairs = pairsOf(fit.map(({ tile }) => tile));
  if (pairs.length === 0) return { skipped: noPairOf(fit.map(({ tile }) => tile)) };
  // Only what is in a pair or its prior is read.
  const used = [...new Set(pairs.flatMap(({ cloudy, clear, prior = [] }) => [cloudy, clear, ...prior]))].sort(
    (a, b) => a - b,
  );
  return {
    dates: used.map((date) => dates[date]),
    pairs: pairs.map(({ cloudy, clear, prior = [] }) => ({
      cloudy: used.indexOf(cloudy),
      clear: used.indexOf(clear),
      prior: prior.map((date) => used.indexOf(date)),
    })),
  };
}

function noPairOf(tiles: Pick<TileRecord, 'coverage' | 'cloudCover'>[]): string {
  const { clear, cloudy } = bothKinds(tiles);
  const dates = `${counted(clear.length, 'date')} without cloud and ${cloudy.length} with ${CLOUDY.least}-${CLOUDY.most} %`;
  const few =
    clear.length === 0 || cloudy.length === 0
      ? 'both are needed'
      : 'none of them within 30 days of each other';
  return `${dates}, of those that cover ${LEAST_COVERAGE} % of the cell: ${few}`;
}

/** Dates without cloud, and those with some of it, as indices. */
function bothKinds(tiles: Pick<TileRecord, 'coverage' | 'cloudCover'>[]): {
  clear: number[];
  cloudy: number[];
} {
  const whole = [...tiles.keys()].filter((date) => tiles[date].coverage >= LEAST_COVERAGE);
  const cloud = (date: number) => tiles[date].cloudCover ?? -1;
  return {
    clear: whole.filter((date) => cloud(date) === 0),
    cloudy: whole.filter((date) => cloud(date) >= CLOUDY.least && cloud(date) <= CLOUDY.most),
  };
}

/** Each date without cloud with the cloudy one nearest in time (the paper's section 2.4.3), the earlier of equals. */
export function pairsOf(tiles: Pick<TileRecord, 'start' | 'coverage' | 'cloudCover'>[]): DatePair[] {
  const { clear, cloudy } = bothKinds(tiles);
  return clear.flatMap((one) => {
    const away = (other: number) => Math.abs(tiles[other].start - tiles[one].start);
    const [nearest] = cloudy.toSorted((a, b) => away(a) - away(b) || tiles[a].start - tiles[b].start);
    if (nearest === undefined || away(nearest) > LONGEST_DISTANCE) return [];
    return [{ cloudy: nearest, clear: one, prior: priorDates(tiles, nearest, one) }];
  });
}

/** The files of a tile that hold these bands; null where it lacks one. */
export function dateFiles(
  storage: Pick<Storage, 'tilePath'>,
  names: readonly BandName[],
  tile: TileRecord,
): PlaceDate | null {
  const files: [BandName, BandFile][] = [];
  for (const name of names) {
    const found = bandOf(tile, name);
    if (!found) return null;
    const { group, index } = found;
    const { scale, offset } = group.bands[index];
    files.push([name, { path: storage.tilePath(tile, group.name), band: index, scale, offset }]);
  }
  return { time: tile.start, bands: Object.fromEntries(files), mask: storage.tilePath(tile, 'mask') };
}

/** Where a tile holds a band: in the group that holds the most of all, so that as few files as can be are read. */
function bandOf(tile: TileRecord, name: BandName): { group: GroupRecord; index: number } | null {
  for (const common of COMMON_NAMES[name]) {
    const found = tile.groups.flatMap((group) => {
      const index = group.bands.findIndex(({ commonName }) => commonName === common);
      return index < 0 ? [] : [{ group, index }];
    });
    if (found.length > 0)
      return found.reduce((a, b) => (b.group.bands.length > a.group.bands.length ? b : a));
  }
  return null;
}
