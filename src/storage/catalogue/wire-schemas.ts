/** Checks of records that other nodes send. They ask for what readers rely on; nodes of other versions may send more members. */
import {
  type Check,
  COUNT,
  listOf,
  messageCheck,
  NUMBER,
  objectOf,
  TEXT,
  tupleOf,
} from '../../json-schema.js';
import type { SentTiles } from './tile-wire-format.js';

/** JSON Schema of a time in milliseconds since 1970 that a date can have. */
export const TIME = { type: 'number', minimum: -8.64e15, maximum: 8.64e15 } as const;

/** JSON Schema of a `Position` in an order of tiles. */
export const POSITION = objectOf(
  { start: NUMBER, collection: TEXT, id: TEXT },
  { keys: listOf({ type: ['string', 'number', 'null'] }) },
);

/** All members of a tile record but its groups. */
const TILE = {
  id: TEXT,
  collection: TEXT,
  scene: TEXT,
  grid: { enum: ['geohash', 'quadtile'] },
  geocode: TEXT,
  version: TEXT,
  source: TEXT,
  start: TIME,
  end: TIME,
  platform: { type: ['string', 'null'] },
  coverage: NUMBER,
  cloudCover: { type: ['number', 'null'] },
  footprint: listOf(tupleOf(NUMBER, NUMBER)),
  derivedFrom: listOf(TEXT),
  createdAt: TIME,
};

const BAND = objectOf(
  { name: TEXT, scale: NUMBER, offset: NUMBER },
  {
    ...{ commonName: TEXT, wavelength: NUMBER, fwhm: NUMBER, good: { type: 'boolean' } },
    classes: listOf(objectOf({ value: COUNT, name: TEXT, colour: TEXT })),
  },
);

/** Members of a group that all tiles of one layout share. */
const LAYOUT_GROUP = {
  name: TEXT,
  role: { enum: ['data', 'qa', 'mask'] },
  dataType: TEXT,
  bands: listOf(BAND),
};

/** Members of a group that differ from tile to tile: its size and its file. */
const OWN_GROUP = { width: COUNT, height: COUNT, bytes: COUNT, crc32: COUNT };

/** JSON Schema of a `TileRecord`. */
export const TILE_RECORD = objectOf({
  ...TILE,
  groups: listOf(objectOf({ ...LAYOUT_GROUP, ...OWN_GROUP })),
});

/** JSON Schema of `SentTiles`. */
const SENT_TILES = objectOf({
  layouts: listOf(listOf(objectOf(LAYOUT_GROUP))),
  tiles: listOf(
    objectOf({
      tile: objectOf(TILE),
      layout: COUNT,
      groups: listOf(tupleOf(COUNT, COUNT, COUNT, COUNT, { type: ['number', 'array', 'null'] })),
    }),
  ),
});

const checkShape = messageCheck(SENT_TILES);

/** The fault of a value that should be `SentTiles`; undefined if `tilesOf` can read it. */
export const checkSentTiles: Check = (value) => {
  const fault = checkShape(value);
  if (fault !== undefined) return fault;
  const { layouts, tiles } = value as SentTiles;
  const isWrong = tiles.some(({ layout, groups }) => layouts[layout]?.length !== groups.length);
  return isWrong ? 'a tile does not fit its layout' : undefined;
};
