/** Tile records in messages between nodes: the common part of the tiles of a product is sent once. */

import {
  joinGroups,
  schemaOf,
  schemaPart,
  type TileGroupPart,
  type TileSchema,
  tilePart,
} from './record-tile-schema.js';
import type { TileRecord } from './records.js';

export interface EncodedTiles {
  layouts: TileSchema[];
  tiles: { tile: Omit<TileRecord, 'groups'>; layout: number; groups: TileGroupPart[] }[];
}

/** Records that become `EncodedTiles` when they are written as JSON, and stay unchanged if they are not sent. */
export class TileBatch {
  constructor(readonly tiles: TileRecord[]) {}

  toJSON(): EncodedTiles {
    const layouts: TileSchema[] = [];
    const numbers = new Map<TileSchema | string, number>();
    const tiles = this.tiles.map((record) => {
      const known = schemaOf(record);
      const schema = known ?? schemaPart(record.groups);
      const key = known ?? JSON.stringify(schema);
      let number = numbers.get(key);
      if (number === undefined) {
        number = layouts.push(schema) - 1;
        numbers.set(key, number);
      }
      const { groups, ...tile } = record;
      return { tile, layout: number, groups: tilePart(groups) };
    });
    return { layouts, tiles };
  }
}

/** Schemas from other nodes by their JSON, so that equal ones are one object. */
const internedSchemas = new Map<string, TileSchema>();
const MAX_INTERNED = 10_000;

function internSchema(schema: TileSchema): TileSchema {
  const json = JSON.stringify(schema);
  const known = internedSchemas.get(json);
  if (known) return known;
  if (internedSchemas.size === MAX_INTERNED) internedSchemas.clear();
  internedSchemas.set(json, schema);
  return schema;
}

/** The records of a batch, which may have been sent as JSON. */
export function decodeTiles(list: TileBatch | EncodedTiles): TileRecord[] {
  if (list instanceof TileBatch) return list.tiles;
  const schemas = list.layouts.map(internSchema);
  return list.tiles.map(({ tile, layout, groups }) =>
    Object.assign(tile, { groups: joinGroups(schemas[layout], groups) }),
  );
}
