export * from './errors.js';
export type { TileFilter } from './filter.js';
export { matches } from './match.js';
export { parseDatetime, type TimeRange } from './parse-datetime.js';
export * from './parse-filter.js';
export { type SearchPage, searchTiles } from './search.js';
export {
  type CollectionExtent,
  type StacAsset,
  type StacCollection,
  type StacItem,
  type StacLink,
  type StacPolygon,
  toStacCollection,
  toStacItem,
} from './stac-item.js';
