/**
 * Types of the catalogue's records, and the forms of tile records on disk and in messages between nodes. Invariant: a record that is
 * encoded and decoded is unchanged. Imports the parts `grid` (types) and `raster`.
 */

export { schemaOf, type TileSchema, TileSchemas } from './record-tile-schema.js';
export { decodeTiles, type EncodedTiles, TileBatch } from './record-tile-wire-format.js';
export * from './record-wavelength-range.js';
export { CURSOR_SCHEMA, checkEncodedTiles, TILE_RECORD_SCHEMA, TIME_SCHEMA } from './record-wire-schemas.js';
export type * from './records.js';
export {
  cellsOfFingerprint,
  keptDeliveries,
  sceneDeliveries,
  tileVersions,
  withoutTile,
} from './scene-deliveries.js';
