export * from './errors.js';
export type { TileFilter } from './filter.js';
export { matches } from './match.js';
export { parseDatetime, type TimeRange } from './parse-datetime.js';
export * from './parse-filter.js';
export { type SearchPage, searchTiles } from './search.js';
