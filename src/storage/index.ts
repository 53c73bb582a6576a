export { type HeldTile, holdTiles } from './cache/pinned-tile.js';
export { Catalogue, type Change, sceneKey } from './catalogue/catalogue.js';
export {
  byCollection,
  type Commit,
  EDITED_TABLES,
  type RecordEdit,
  supersededFolders,
} from './catalogue/commit.js';
export { LevelWriter } from './catalogue/level-writer.js';
export * from './catalogue/records.js';
export { layoutOf, type TileLayout } from './catalogue/tile-schema.js';
export { type SentTiles, TileList, tilesOf } from './catalogue/tile-wire-format.js';
export {
  micrometres,
  rangeNamed,
  type WavelengthRange,
  wavelengthRange,
} from './catalogue/wavelength-range.js';
export { checkSentTiles, POSITION, TILE_RECORD, TIME } from './catalogue/wire-schemas.js';
export { ColumnIndex } from './column-index/column-index.js';
export type { Rows } from './column-index/index-run.js';
export { isWithin, type KeyRange, mergeRanges } from './column-index/key-range.js';
export type { IndexPage, IndexQuery, RowTest, RunTest, Selection } from './column-index/query/index-query.js';
export {
  comparePlaces,
  type Position,
  type RowOrder,
  SORT_COLUMNS,
  type SortColumn,
  type SortValue,
} from './column-index/query/sort-order.js';
export {
  asStorageError,
  collectionBusy,
  collectionFixed,
  modelDamaged,
  noModel,
  noModelVersion,
  sceneBusy,
  storageCorrupt,
  storageFull,
  storageLocked,
  storeCorrupt,
  storeExists,
  storeNotFound,
  tooOld,
} from './errors.js';
export { DataFolder, readLock } from './files/data-folder.js';
export type { DiskReserve } from './files/disk-reserve.js';
export { makeFolderDurably, syncFile, writeFileDurably, writeSynced } from './files/durable-fs.js';
export { type ModelFilePlace, readModelFile } from './files/model-files.js';
export {
  commonCell,
  derivedTileId,
  FILE_NAME_SCHEMA,
  firstVersionAt,
  modelId,
  newVersion,
  tileId,
  VERSION_SCHEMA,
  WORLD,
} from './files/names.js';
export { relativePaths } from './files/path-redaction.js';
export { modelFile, modelFolder, type TileVersion, tileFile, tileFolder } from './files/paths.js';
export type {
  Cancellable,
  Content,
  ObjectInfo,
  ObjectStore,
  PutOptions,
  ReadOptions,
} from './object-store/object-store.js';
export { openObjectStore, requireApart } from './object-store/open.js';
export { type NewCollection, Storage, type StorageOptions } from './storage.js';
export { type VerifyOptions, type VerifyReport, verify } from './verify/verify.js';
export { requireSameCells } from './write/delete-scenes.js';
export { DerivedWrite, type ObsoleteTile } from './write/derived-write.js';
export { bestVersion, recordOf, versionNamed, versionsOf } from './write/model-versions.js';
export type { NewModel } from './write/model-write.js';
export { SceneWrite } from './write/scene-write.js';
export type { Claim, Claims, CountedClaims } from './write/write-lock.js';
