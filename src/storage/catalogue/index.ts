/**
 * The catalogue: tables of records in LevelDB. Invariant: every record has a checksum, and a batch is written completely or not at all.
 * May import `async`, `files` and `records`.
 */
export { Catalogue, type IndexLogRecord, sceneKey } from './catalogue.js';
export { LevelWriter } from './catalogue-level-writer.js';
export type { CatalogueChange, ScanResult, Table } from './catalogue-table.js';
