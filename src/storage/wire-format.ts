/**
 * Tile records in messages between nodes: the common part of the tiles of a product is sent once. The checks of records require the members
 * that readers use; nodes of other versions may send more.
 */

import {
  type Check,
  COUNT,
  listOf,
  messageCheck,
  NUMBER,
  objectOf,
  TEXT,
  tupleOf,
} from '../utils/json-schema.js';
import type { TileRecord } from './records.js';
import {
  joinGroups,
  schemaOf,
  schemaPart,
  type TileGroupPart,
  type TileSchema,
  tilePart,
} from './tile-schema.js';

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

/** JSON Schema of a time in ms since 1970, within the range of `Date`. */
export const TIME_SCHEMA = { type: 'number', minimum: -8.64e15, maximum: 8.64e15 } as const;

/** JSON Schema of a `Cursor`. */
export const CURSOR_SCHEMA = objectOf(
  { start: NUMBER, collection: TEXT, id: TEXT },
  { keys: listOf({ type: ['string', 'number', 'null'] }) },
);

/** All members of a tile record except its groups. */
const TILE_MEMBERS = {
  id: TEXT,
  collection: TEXT,
  scene: TEXT,
  grid: { enum: ['geohash', 'quadtile'] },
  geocode: TEXT,
  version: TEXT,
  source: TEXT,
  start: TIME_SCHEMA,
  end: TIME_SCHEMA,
  platform: { type: ['string', 'null'] },
  coverage: NUMBER,
  cloudCover: { type: ['number', 'null'] },
  footprint: listOf(tupleOf(NUMBER, NUMBER)),
  derivedFrom: listOf(TEXT),
  createdAt: TIME_SCHEMA,
};

/** Members that some records lack, and that readers could misread. */
const OPTIONAL_TILE_MEMBERS = {
  warnings: listOf(TEXT),
  dataParts: { type: 'string', pattern: '^[0-9a-f]{16}$' },
};

const BAND_SCHEMA = objectOf(
  { name: TEXT, scale: NUMBER, offset: NUMBER },
  {
    commonName: TEXT,
    wavelength: NUMBER,
    fwhm: NUMBER,
    good: { type: 'boolean' },
    classes: listOf(objectOf({ value: COUNT, name: TEXT, colour: TEXT })),
  },
);

/** Members of a group that all tiles of one schema share. */
const SCHEMA_GROUP_MEMBERS = {
  name: TEXT,
  file: TEXT,
  role: { enum: ['data', 'qa', 'mask'] },
  dataType: TEXT,
  bands: listOf(BAND_SCHEMA),
};

/** Members of a group that differ from tile to tile: its size, and that and the checksum of its image. */
const TILE_GROUP_MEMBERS = { width: COUNT, height: COUNT, bytes: COUNT, crc32: COUNT };

/** JSON Schema of a `TileRecord`. */
export const TILE_RECORD_SCHEMA = objectOf(
  { ...TILE_MEMBERS, groups: listOf(objectOf({ ...SCHEMA_GROUP_MEMBERS, ...TILE_GROUP_MEMBERS })) },
  OPTIONAL_TILE_MEMBERS,
);

/** JSON Schema of `EncodedTiles`. */
const ENCODED_TILES_SCHEMA = objectOf({
  layouts: listOf(listOf(objectOf(SCHEMA_GROUP_MEMBERS))),
  tiles: listOf(
    objectOf({
      tile: objectOf(TILE_MEMBERS, OPTIONAL_TILE_MEMBERS),
      layout: COUNT,
      groups: listOf(tupleOf(COUNT, COUNT, COUNT, COUNT, { type: ['number', 'array', 'null'] })),
    }),
  ),
});

const checkShape = messageCheck(ENCODED_TILES_SCHEMA);

/** The fault of a value that should be `EncodedTiles`; undefined if `decodeTiles` can read it. */
export const checkEncodedTiles: Check = (value) => {
  const fault = checkShape(value);
  if (fault !== undefined) return fault;
  const { layouts, tiles } = value as EncodedTiles;
  const isWrong = tiles.some(({ layout, groups }) => layouts[layout]?.length !== groups.length);
  return isWrong ? 'a tile does not fit its layout' : undefined;
};
