/**
 * The store of one node: `Storage` opens a data folder and gives access to records, files and the column index. Invariant: all changes go
 * through `CommitApplier`, so a search sees a scene completely or not at all. Imports the parts `async`, `grid`, `metrics` (types) and
 * `raster`.
 */
export { type PinnedTile, pinTiles, withPinnedTiles } from './cache/index.js';
export { Catalogue, type CatalogueChange, LevelWriter, sceneKey } from './catalogue/index.js';
export {
  type CellKeyRange,
  ColumnIndex,
  type Cursor,
  compareCursors,
  type IndexRun,
  isWithin,
  mergeRanges,
  type RowFilter,
  type RunFilter,
  type Selection,
  SORT_COLUMNS,
  type SortColumn,
  type SortOrder,
  type SortValue,
} from './column-index/index.js';
export {
  byCollection,
  type Commit,
  type CountedLockManager,
  REPLICATED_TABLES,
  type RecordEdit,
  supersededFolders,
  type WriteLock,
  withLock,
} from './commit/index.js';
export { readLock } from './data-folder/index.js';
export {
  collectionBusy,
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
  storeLost,
  storeNotFound,
} from './errors.js';
export {
  asStorageError,
  commonCell,
  type DiskReserve,
  derivedTileId,
  FILE_NAME_SCHEMA,
  filesOf,
  firstVersionAt,
  fsyncPath,
  geocodeOfModel,
  type ModelFileLocation,
  makeFolderDurably,
  modelFile,
  modelFolder,
  modelId,
  newVersion,
  orIfMissing,
  readModelFile,
  redactDataFolder,
  type TileVersion,
  tileFile,
  tileFolder,
  tileId,
  VERSION_SCHEMA,
  WORLD_CELL,
  writeFileDurably,
  writeFileSynced,
} from './files/index.js';
export {
  type Content,
  measuredStore,
  type ObjectInfo,
  type ObjectStore,
  openObjectStore,
  requireDisjoint,
} from './object-store/index.js';
export {
  CURSOR_SCHEMA,
  cellsOfFingerprint,
  checkEncodedTiles,
  decodeTiles,
  type EncodedTiles,
  micrometres,
  rangeNamed,
  schemaOf,
  TILE_RECORD_SCHEMA,
  TIME_SCHEMA,
  TileBatch,
  type TileSchema,
  wavelengthRange,
} from './records/index.js';
export * from './records/records.js';
export { type NewCollection, Storage } from './storage.js';
export { type VerifyOptions, type VerifyReport, verify } from './verify/index.js';
export {
  bestVersion,
  DerivedWrite,
  modelRecordOf,
  type ObsoleteTile,
  requireSameCells,
  type ScenePart,
  SceneWrite,
  versionNamed,
  versionsOf,
} from './write/index.js';
