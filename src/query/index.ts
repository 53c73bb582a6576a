export * from './errors.js';
export type { TileFilter } from './filter.js';
export { matches } from './match.js';
export { type SearchPage, searchTiles } from './search.js';
