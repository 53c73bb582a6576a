export { type PinnedTile, pinTiles } from './cache/pinned-tile.js';
export { Catalogue, sceneKey } from './catalogue/catalogue.js';
export { LevelWriter } from './catalogue/level-writer.js';
export type { CatalogueChange } from './catalogue/table.js';
export { ColumnIndex } from './column-index/column-index.js';
export type { IndexRun } from './column-index/index-run.js';
export { type CellKeyRange, isWithin, mergeRanges } from './column-index/key-range.js';
export type {
  IndexPage,
  IndexQuery,
  RowFilter,
  RunFilter,
  Selection,
} from './column-index/query/index-query.js';
export {
  type Cursor,
  compareCursors,
  SORT_COLUMNS,
  type SortColumn,
  type SortOrder,
  type SortValue,
} from './column-index/query/sort-order.js';
export {
  byCollection,
  type Commit,
  REPLICATED_TABLES,
  type RecordEdit,
  supersededFolders,
} from './commit/commit.js';
export type { CountedLockManager, LockManager, WriteLock } from './commit/write-lock.js';
export { DataFolder, readLock } from './data-folder/data-folder.js';
export {
  collectionBusy,
  collectionFixed,
  commitTooOld,
  modelDamaged,
  modelNotFound,
  modelVersionNotFound,
  sceneBusy,
  storageCorrupt,
  storageFull,
  storageLocked,
  storeCorrupt,
  storeExists,
  storeNotFound,
} from './errors.js';
export { asStorageError } from './files/disk-errors.js';
export type { DiskReserve } from './files/disk-reserve.js';
export { fsyncPath, makeFolderDurably, writeFileDurably, writeFileSynced } from './files/durable-fs.js';
export { type ModelFileLocation, readModelFile } from './files/model-files.js';
export {
  commonCell,
  derivedTileId,
  FILE_NAME_SCHEMA,
  firstVersionAt,
  modelId,
  newVersion,
  tileId,
  VERSION_SCHEMA,
  WORLD_CELL,
} from './files/names.js';
export { redactDataFolder } from './files/path-redaction.js';
export { modelFile, modelFolder, type TileVersion, tileFile, tileFolder } from './files/paths.js';
export type {
  Cancellable,
  Content,
  ObjectInfo,
  ObjectStore,
  PutOptions,
  ReadOptions,
} from './object-store/object-store.js';
export { openObjectStore, requireDisjoint } from './object-store/open.js';
export * from './records/records.js';
export { schemaOf, type TileSchema } from './records/tile-schema.js';
export { decodeTiles, type EncodedTiles, TileBatch } from './records/tile-wire-format.js';
export {
  micrometres,
  rangeNamed,
  type WavelengthRange,
  wavelengthRange,
} from './records/wavelength-range.js';
export {
  CURSOR_SCHEMA,
  checkEncodedTiles,
  TILE_RECORD_SCHEMA,
  TIME_SCHEMA,
} from './records/wire-schemas.js';
export { type NewCollection, Storage, type StorageOptions } from './storage.js';
export { type VerifyOptions, type VerifyReport, verify } from './verify/verify.js';
export { requireSameCells } from './write/delete-scenes.js';
export { DerivedWrite, type ObsoleteTile } from './write/derived-write.js';
export type { NewModel } from './write/model-store.js';
export { bestVersion, modelRecordOf, versionNamed, versionsOf } from './write/model-versions.js';
export { SceneWrite } from './write/scene-write.js';
