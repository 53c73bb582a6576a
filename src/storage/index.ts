export { Catalogue, type Change, sceneKey } from './catalogue.js';
export type { Claim, Claims, CountedClaims } from './claims.js';
export { ColumnIndex } from './column-index.js';
export { byCollection, type Commit, EDITED_TABLES, type RecordEdit, supersededFolders } from './commit.js';
export { DataFolder, readLock } from './data-folder.js';
export { DerivedWrite, type ObsoleteTile } from './derived-write.js';
export type { DiskReserve } from './disk-reserve.js';
export { makeFolderDurably, syncFile, writeFileDurably, writeSynced } from './durable.js';
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
export { type HeldTile, holdTiles } from './hold-tile.js';
export { inLanes } from './in-lanes.js';
export type { IndexPage, IndexQuery, RowTest, RunTest, Selection } from './index-query.js';
export { isWithin, type KeyRange, mergeRanges } from './key-range.js';
export { modelFile, modelFolder, type TileVersion, tileFile, tileFolder } from './layout.js';
export { LevelWriter } from './level-writer.js';
export { type ModelFilePlace, readModelFile } from './model-files.js';
export { bestVersion, recordOf, versionNamed, versionsOf } from './model-versions.js';
export type { NewModel } from './model-write.js';
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
} from './names.js';
export type {
  Cancellable,
  Content,
  ObjectInfo,
  ObjectStore,
  PutOptions,
  ReadOptions,
} from './object-store/object-store.js';
export { openObjectStore, requireApart } from './object-store/open.js';
export * from './records.js';
export { relativePaths } from './relative-paths.js';
export {
  comparePlaces,
  type Position,
  type RowOrder,
  SORT_COLUMNS,
  type SortColumn,
  type SortValue,
} from './row-order.js';
export type { Rows } from './rows.js';
export { requireSameCells } from './scene-tiles.js';
export { SceneWrite } from './scene-write.js';
export { checkSentTiles, POSITION, TILE_RECORD, TIME } from './sent-records.js';
export { type NewCollection, Storage, type StorageOptions } from './storage.js';
export { layoutOf, type TileLayout } from './tile-layouts.js';
export { type SentTiles, TileList, tilesOf } from './tile-list.js';
export { toArray } from './to-array.js';
export { type VerifyOptions, type VerifyReport, verify } from './verify.js';
export { micrometres, rangeNamed, type WavelengthRange, wavelengthRange } from './wavelength-range.js';
