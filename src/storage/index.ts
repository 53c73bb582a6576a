/**
 * The store of one node: `Storage` opens a data folder and gives access to records, files and the column index. Invariant: all changes go
 * through `CommitApplier`, so a search sees a scene completely or not at all. Imports the parts `async`, `grid`, `metrics` (types) and
 * `raster`.
 */

export { Catalogue, type CatalogueChange, sceneKey } from './catalogue.js';
export { requireSameCells } from './collection-write.js';
export { type CellKeyRange, isWithin, mergeRanges } from './column-index/cell-directory.js';
export { ColumnIndex } from './column-index/column-index.js';
export type { RowFilter, RunFilter, Selection } from './column-index/query.js';
export type { IndexRun } from './column-index/run.js';
export {
  type Cursor,
  compareCursors,
  SORT_COLUMNS,
  type SortColumn,
  type SortOrder,
  type SortValue,
} from './column-index/sort-order.js';
export {
  byCollection,
  type Commit,
  REPLICATED_TABLES,
  type RecordEdit,
  supersededFolders,
} from './commit.js';
export { readLock } from './data-folder.js';
export { DerivedWrite, type ObsoleteTile } from './derived-write.js';
export { asStorageError, type DiskReserve, orIfMissing } from './disk.js';
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
  commonCell,
  derivedTileId,
  FILE_NAME_SCHEMA,
  filesOf,
  filesOfGroups,
  firstVersionAt,
  geocodeOfModel,
  modelFile,
  modelFolder,
  modelId,
  newVersion,
  redactDataFolder,
  type TileLayout,
  type TileVersion,
  tileFolder,
  tileId,
  VERSION_SCHEMA,
  versionOfFolder,
  WORLD_CELL,
} from './file-names.js';
export { fsyncPath, makeFolderDurably, writeFileDurably, writeFileSynced } from './files.js';
export { LevelWriter, openLevel } from './level.js';
export {
  bestVersion,
  type ModelFileLocation,
  modelRecordOf,
  readModelFile,
  versionNamed,
  versionsOf,
} from './models.js';
export {
  type Content,
  measuredStore,
  type ObjectInfo,
  type ObjectStore,
} from './object-store/object-store.js';
export { openObjectStore, requireDisjoint } from './object-store/open.js';
export {
  type BandRecord,
  type ClassRecord,
  type ClusteringRecord,
  type CollectionRecord,
  cellsOfFingerprint,
  type GroupRecord,
  type JobRecord,
  type JobStatus,
  type JobSummary,
  jobRecordOf,
  jobSummaryOf,
  type LogLevel,
  type LogRecord,
  type ModelFile,
  type ModelRecord,
  type ModelScore,
  type ModelVersionRecord,
  type ReplicaRecord,
  type RequestRecord,
  type SceneDelivery,
  type SceneRecord,
  type TextureRecord,
  type TileRecord,
  type TileSource,
  type TrainedVersion,
  tileSources,
  tileWarnings,
} from './records.js';
export { type ScenePart, SceneWrite } from './scene-write.js';
export { type NewCollection, Storage } from './storage.js';
export { type PinnedTile, pinTiles, withPinnedTiles } from './tile-cache.js';
export { micrometres, rangeNamed, schemaOf, type TileSchema, wavelengthRange } from './tile-schema.js';
export { type VerifyOptions, type VerifyReport, verify } from './verify.js';
export {
  CURSOR_SCHEMA,
  checkEncodedTiles,
  decodeTiles,
  type EncodedTiles,
  TILE_RECORD_SCHEMA,
  TIME_SCHEMA,
  TileBatch,
} from './wire-format.js';
export { type CountedLockManager, type WriteLock, withLock } from './write-lock.js';
