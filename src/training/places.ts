/** Places to train on: one cell of one collection with all of its dates. */
import type { GridName } from '../geocode/index.js';
import type { GroupRecord, Storage, TileRecord } from '../storage/index.js';
import type { BandFile, PlaceDate } from './worker-messages.js';

export interface Place {
  collection: string;
  grid: GridName;
  geocode: string;
  /** From the earliest to the latest. */
  tiles: TileRecord[];
}

export function groupByPlace(tiles: TileRecord[]): Place[] {
  const places = new Map<string, Place>();
  for (const tile of tiles) {
    const { collection, grid, geocode } = tile;
    const key = `${collection} ${grid} ${geocode}`;
    const place = places.get(key) ?? { collection, grid, geocode, tiles: [] };
    place.tiles.push(tile);
    places.set(key, place);
  }
  for (const place of places.values())
    place.tiles.sort((a, b) => a.start - b.start || (a.id < b.id ? -1 : 1));
  return [...places.values()].sort((a, b) => (a.geocode < b.geocode ? -1 : a.geocode > b.geocode ? 1 : 0));
}

/** Common names of the bands that a model reads; the first that a group has is taken. */
const WANTED = { red: ['red'], green: ['green'], blue: ['blue'], nir: ['nir', 'nir08'] };

/** Files of one date, or null where no group of the tile holds all of red, green, blue and near infrared. */
export function filesOf(storage: Storage, tile: TileRecord): PlaceDate | null {
  for (const group of tile.groups) {
    const found = Object.entries(WANTED).map(([name, names]) => [
      name,
      bandFile(storage, tile, group, names),
    ]);
    if (found.every(([, file]) => file !== null)) {
      const files = Object.fromEntries(found) as Record<keyof typeof WANTED, BandFile>;
      return { time: tile.start, ...files, mask: storage.tilePath(tile, 'mask') };
    }
  }
  return null;
}

function bandFile(storage: Storage, tile: TileRecord, group: GroupRecord, names: string[]): BandFile | null {
  for (const name of names) {
    const index = group.bands.findIndex((band) => band.commonName === name);
    if (index < 0) continue;
    const { scale, offset } = group.bands[index];
    return { path: storage.tilePath(tile, group.name), band: index, scale, offset };
  }
  return null;
}
