/**
 * The catalogue: tables of records in LevelDB. Invariant: every record has a checksum, and a batch is written completely or not at all.
 * Imports the folders `files` and `records` and the part `async`.
 */
export { Catalogue, type IndexLogRecord, sceneKey } from './catalogue.js';
export type { CatalogueChange, ScanResult, Table } from './catalogue-table.js';
export { LevelWriter } from './catalogue-writer.js';
