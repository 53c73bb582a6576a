/** Tile records on their way to another node: what the tiles of a product have in common is sent once. */
import type { TileRecord } from './records.js';
import {
  groupsOf,
  layoutOf,
  ownParts,
  type StoredGroup,
  sharedParts,
  type TileLayout,
} from './tile-schema.js';

/** As JSON has it. */
export interface SentTiles {
  layouts: TileLayout[];
  tiles: { tile: Omit<TileRecord, 'groups'>; layout: number; groups: StoredGroup[] }[];
}

/** Records that become `SentTiles` when they are written as JSON, and stay as they are where they are not sent. */
export class TileList {
  constructor(readonly tiles: TileRecord[]) {}

  toJSON(): SentTiles {
    const layouts: TileLayout[] = [];
    const numbers = new Map<TileLayout | string, number>();
    const tiles = this.tiles.map((record) => {
      const known = layoutOf(record);
      const layout = known ?? sharedParts(record.groups);
      const key = known ?? JSON.stringify(layout);
      let number = numbers.get(key);
      if (number === undefined) {
        number = layouts.push(layout) - 1;
        numbers.set(key, number);
      }
      const { groups, ...tile } = record;
      return { tile, layout: number, groups: ownParts(groups) };
    });
    return { layouts, tiles };
  }
}

/** Layouts that came from other nodes, by their JSON, so that equal ones are one object; more than a few products have. */
const met = new Map<string, TileLayout>();
const MOST_MET = 10_000;

function sameLayout(layout: TileLayout): TileLayout {
  const json = JSON.stringify(layout);
  const known = met.get(json);
  if (known) return known;
  if (met.size === MOST_MET) met.clear();
  met.set(json, layout);
  return layout;
}

/** The records, sent or not. */
export function tilesOf(list: TileList | SentTiles): TileRecord[] {
  if (list instanceof TileList) return list.tiles;
  const layouts = list.layouts.map(sameLayout);
  return list.tiles.map(({ tile, layout, groups }) =>
    Object.assign(tile, { groups: groupsOf(layouts[layout], groups) }),
  );
}
